{{/* The Deployment of one role: dict root, role. */}}
{{- define "rialto.deployment" -}}
{{- $root := .root -}}
{{- $values := index .root.Values .role -}}
{{- $config := include "rialto.configFile" .root -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "rialto.metadata" (dict "root" $root "role" .role "suffix" .role) | nindent 2 }}
spec:
  {{- with include "rialto.replicas" . }}
  replicas: {{ . }}
  {{- end }}
  revisionHistoryLimit: 3
  strategy:
    type: RollingUpdate
    rollingUpdate: { maxUnavailable: 0, maxSurge: 25% }
  selector:
    matchLabels:
      {{- include "rialto.selector" . | nindent 6 }}
  template:
    metadata:
      {{- include "rialto.podMetadata" (dict "root" $root "role" .role) | nindent 6 }}
    spec:
      serviceAccountName: {{ include "rialto.serviceAccountName" $root }}
      {{- include "rialto.podCommon" $root | nindent 6 }}
      {{- with include "rialto.topologySpread" . }}
      {{- . | nindent 6 }}
      {{- end }}
      terminationGracePeriodSeconds: {{ int $values.terminationGracePeriodSeconds }}
      initContainers:
        {{- with $root.Values.podDefaults.extraInitContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        - name: db-wait
          {{- include "rialto.appContainer" $root | nindent 10 }}
          args: [dist/src/cli.js, db, wait]
          env:
            {{- include "rialto.databaseEnv" $root | nindent 12 }}
          resources:
            {{- toYaml $root.Values.migrations.resources | nindent 12 }}
          volumeMounts:
            {{- include "rialto.mounts" $root | nindent 12 }}
      containers:
        - name: {{ .role }}
          {{- include "rialto.appContainer" $root | nindent 10 }}
          env:
            {{- include "rialto.env" . | nindent 12 }}
          {{- with $root.Values.podDefaults.extraEnvFrom }}
          envFrom:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - { name: http, containerPort: 3000 }
            {{- if $root.Values.metrics.enabled }}
            - { name: metrics, containerPort: {{ int $root.Values.metrics.port }} }
            {{- end }}
            {{- if and $root.Values.grpc.enabled (eq .role "api") }}
            - { name: grpc, containerPort: {{ int $root.Values.grpc.port }} }
            {{- end }}
          {{- include "rialto.probes" $root | nindent 10 }}
          {{- if and (eq .role "api") (gt (int $values.preStopSleepSeconds) 0) (semverCompare ">=1.30.0-0" $root.Capabilities.KubeVersion.Version) }}
          lifecycle:
            preStop:
              sleep: { seconds: {{ int $values.preStopSleepSeconds }} }
          {{- end }}
          resources:
            {{- toYaml $values.resources | nindent 12 }}
          volumeMounts:
            {{- include "rialto.mounts" $root | nindent 12 }}
            {{- if $config }}
            - { name: config, mountPath: /etc/rialto, readOnly: true }
            {{- end }}
        {{- with $root.Values.podDefaults.extraContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      volumes:
        {{- include "rialto.volumes" $root | nindent 8 }}
        {{- if $config }}
        - name: config
          configMap: { name: {{ include "rialto.fullname" $root }}-config }
        {{- end }}
{{- end -}}
