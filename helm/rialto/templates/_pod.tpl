{{- define "rialto.podSecurityContext" -}}
runAsNonRoot: true
{{- if not .Values.security.platformAssignsUser }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "rialto.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "rialto.podMetadata" -}}
labels:
  {{- include "rialto.labels" . | nindent 2 }}
  {{- with .root.Values.podDefaults.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $config := include "rialto.configFile" .root }}
{{- $checksum := ternary (dict "checksum/config" (sha256sum $config)) (dict) (and (ne .role "migrate") (ne $config "")) }}
{{- with merge (dict) $checksum .root.Values.podDefaults.annotations .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What every pod has in common, whichever its containers. */}}
{{- define "rialto.podCommon" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "rialto.podSecurityContext" . | nindent 2 }}
{{- with .Values.podDefaults }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Image and mounts of a container that runs the app's image. */}}
{{- define "rialto.appContainer" -}}
image: {{ include "rialto.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- include "rialto.containerSecurityContext" . | nindent 2 }}
{{- end -}}

{{- define "rialto.mounts" -}}
- { name: tmp, mountPath: /tmp }
{{- with .Values.podDefaults.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "rialto.volumes" -}}
- name: tmp
  emptyDir: { sizeLimit: 256Mi }
{{- with .Values.podDefaults.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* dict root, role. Only nodes become a hard rule in profile ha: a cluster of one zone must still schedule. */}}
{{- define "rialto.topologySpread" -}}
{{- $spread := .root.Values.podDefaults.topologySpread -}}
{{- if $spread.enabled -}}
topologySpreadConstraints:
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - topologyKey: {{ $key }}
    maxSkew: {{ int $spread.maxSkew }}
    whenUnsatisfiable: {{ ternary "DoNotSchedule" $spread.whenUnsatisfiable (and (eq $.root.Values.profile "ha") (eq $key "kubernetes.io/hostname")) }}
    nodeTaintsPolicy: Honor
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels:
        {{- include "rialto.selector" $ | nindent 8 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Start-up and liveness ask whether the process runs, readiness whether it may be given work. */}}
{{- define "rialto.probes" -}}
{{- with .Values.probes -}}
startupProbe:
  httpGet: { path: /livez, port: http }
  periodSeconds: 2
  timeoutSeconds: {{ int .timeoutSeconds }}
  failureThreshold: {{ max 1 (div (int .startupSeconds) 2) }}
livenessProbe:
  httpGet: { path: /livez, port: http }
  periodSeconds: {{ int .periodSeconds }}
  timeoutSeconds: {{ int .timeoutSeconds }}
  failureThreshold: {{ int .failureThreshold }}
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: {{ int .periodSeconds }}
  timeoutSeconds: {{ int .timeoutSeconds }}
  failureThreshold: {{ int .failureThreshold }}
{{- end -}}
{{- end -}}
