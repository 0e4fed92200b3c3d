{{- define "rialto.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* 46 characters: the longest suffix, -migrate-12345678, then still fits into 63. */}}
{{- define "rialto.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 46 | trimSuffix "-" -}}
{{- else if contains (include "rialto.name" .) .Release.Name -}}
{{- .Release.Name | trunc 46 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "rialto.name" .) | trunc 46 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Digest wins over tag; the tag defaults to the app's version. */}}
{{- define "rialto.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of one role: dict root, role. */}}
{{- define "rialto.selector" -}}
app.kubernetes.io/name: {{ include "rialto.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end -}}

{{/* Labels of an object: dict root, role. */}}
{{- define "rialto.labels" -}}
{{ include "rialto.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: rialto
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Name, namespace, labels and annotations of an object: dict root, role, suffix, labels, annotations. */}}
{{- define "rialto.metadata" -}}
name: {{ include "rialto.fullname" .root }}{{ with .suffix }}-{{ . }}{{ end }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "rialto.labels" . | nindent 2 }}
{{- with .labels }}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with merge (dict) (.annotations | default (dict)) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "rialto.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "rialto.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Pods of a role: at least 3 api and 2 worker in profile ha. Empty while an autoscaler decides. */}}
{{- define "rialto.replicas" -}}
{{- $values := index .root.Values .role -}}
{{- if eq $values.autoscaling.mode "none" -}}
{{- include "rialto.floor" (dict "root" .root "role" .role "count" $values.replicas) -}}
{{- end -}}
{{- end -}}

{{/* The least pods a role can have, whoever decides: for budgets and autoscalers. */}}
{{- define "rialto.leastReplicas" -}}
{{- $values := index .root.Values .role -}}
{{- $count := ternary $values.replicas $values.autoscaling.minReplicas (eq $values.autoscaling.mode "none") -}}
{{- include "rialto.floor" (dict "root" .root "role" .role "count" $count) -}}
{{- end -}}

{{- define "rialto.floor" -}}
{{- $floor := ternary (ternary 3 2 (eq .role "api")) 0 (eq .root.Values.profile "ha") -}}
{{- max (int .count) $floor -}}
{{- end -}}

{{/* The declared content of rialto.config.json as JSON, or nothing. */}}
{{- define "rialto.configFile" -}}
{{- $content := dict -}}
{{- range $key, $value := .Values.bootstrap -}}
{{- if $value -}}{{- $_ := set $content $key $value -}}{{- end -}}
{{- end -}}
{{- if $content -}}{{- $content | toPrettyJson -}}{{- end -}}
{{- end -}}

{{/* Port of the OTLP endpoint. */}}
{{- define "rialto.otelPort" -}}
{{- $url := urlParse .Values.otel.endpoint -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{- $port | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- end -}}
