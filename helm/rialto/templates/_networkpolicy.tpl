{{- define "rialto.egressRule" -}}
- ports:
    {{- range .ports }}
    {{- $port := . }}
    {{- range $protocol := $.protocols }}
    - { protocol: {{ $protocol }}, port: {{ int $port }} }
    {{- end }}
    {{- end }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- define "rialto.ingressRule" -}}
- ports:
    {{- range .ports }}
    - { protocol: TCP, port: {{ . }} }
    {{- end }}
  {{- with .from }}
  from:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
