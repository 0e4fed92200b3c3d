{{/* Pod template of the migration. The hook uses nothing of the chart, because it runs before the chart's objects exist. */}}
{{- define "rialto.migratePod" -}}
metadata:
  {{- include "rialto.podMetadata" (dict "root" . "role" "migrate") | nindent 2 }}
spec:
  restartPolicy: Never
  {{- if ne .Values.migrations.mode "hook" }}
  serviceAccountName: {{ include "rialto.serviceAccountName" . }}
  {{- else if .Values.migrations.serviceAccountName }}
  serviceAccountName: {{ .Values.migrations.serviceAccountName }}
  {{- end }}
  {{- include "rialto.podCommon" . | nindent 2 }}
  {{- with .Values.podDefaults.extraInitContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: migrate
      {{- include "rialto.appContainer" . | nindent 6 }}
      args: [dist/src/cli.js, db, migrate]
      env:
        {{- include "rialto.databaseEnv" . | nindent 8 }}
      resources:
        {{- toYaml .Values.migrations.resources | nindent 8 }}
      volumeMounts:
        {{- include "rialto.mounts" . | nindent 8 }}
  volumes:
    {{- include "rialto.volumes" . | nindent 4 }}
{{- end -}}

{{/* An ordinary Job cannot be changed, so its name changes with its content; under a GitOps tool the revision would not. */}}
{{- define "rialto.migrateSuffix" -}}
{{- if eq .Values.migrations.mode "hook" -}}migrate{{- else -}}migrate-{{ include "rialto.migratePod" . | sha256sum | trunc 8 }}{{- end -}}
{{- end -}}
