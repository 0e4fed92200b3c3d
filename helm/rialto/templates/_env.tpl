{{/* One variable from a Secret: dict name, secret, key, optional. */}}
{{- define "rialto.secretEnv" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
      {{- if .optional }}
      optional: true
      {{- end }}
{{- end -}}

{{/* What `db wait` and `db migrate` need, and nothing more. */}}
{{- define "rialto.databaseEnv" -}}
{{- $secret := .Values.database.existingSecret | default .Values.secrets.existingSecret -}}
{{- $keys := .Values.secrets.keys -}}
- name: NODE_ENV
  value: production
{{ include "rialto.secretEnv" (dict "name" "DATABASE_URL" "secret" $secret "key" $keys.databaseUrl) }}
{{- if $keys.databaseDirectUrl }}
{{ include "rialto.secretEnv" (dict "name" "RIALTO_DATABASE_DIRECT_URL" "secret" $secret "key" $keys.databaseDirectUrl) }}
{{- end }}
{{- end -}}

{{/* Settings that are no secrets, by variable name; empty ones are left out. */}}
{{- define "rialto.plainSettings" -}}
{{- with .Values.config }}
RIALTO_PUBLIC_URL: {{ .publicUrl | quote }}
RIALTO_OUTBOUND_ALLOW: {{ join "," .outboundAllow | quote }}
RIALTO_TRUST_PROXY: {{ .trustProxy | quote }}
RIALTO_MAX_BODY_BYTES: {{ int64 .maxBodyBytes | quote }}
RIALTO_RATE_LIMIT_PRINCIPAL: {{ int64 .rateLimit.principal | quote }}
RIALTO_RATE_LIMIT_ORG: {{ int64 .rateLimit.org | quote }}
RIALTO_RATE_LIMIT_TOOL: {{ int64 .rateLimit.tool | quote }}
RIALTO_WEBHOOK_MAX_PER_HOST: {{ int64 .webhooks.maxPerHost | quote }}
RIALTO_WEBHOOK_MAX_PER_ORG: {{ int64 .webhooks.maxPerOrg | quote }}
RIALTO_TOOL_TIMEOUT_MS: {{ int64 .toolTimeoutMs | quote }}
RIALTO_MCP_TOOL_NAMES: {{ .mcpToolNames | quote }}
RIALTO_A2A_PROFILE: {{ .a2aProfile | quote }}
RIALTO_A2A_ACCEPT_CLEARTEXT: {{ .a2aAcceptCleartext | quote }}
RIALTO_JWT_ISSUERS: {{ join "," .jwt.issuers | quote }}
RIALTO_JWT_AUDIENCE: {{ join "," .jwt.audience | quote }}
RIALTO_JWKS: {{ join "," .jwt.jwks | quote }}
RIALTO_TASK_RETENTION_DAYS: {{ int64 .taskRetentionDays | quote }}
RIALTO_AUDIT_RETENTION_DAYS: {{ ternary (int64 .auditRetentionDays | toString) "" (gt (int64 .auditRetentionDays) 0) | quote }}
RIALTO_CARD_CHANGES: {{ .cardChanges | quote }}
RIALTO_CARD_SIGNATURES: {{ .cardSignatures | quote }}
RIALTO_CARD_KEYS: {{ empty .cardKeys | ternary "" (dict "keys" .cardKeys | toJson) | quote }}
RIALTO_CARD_KEY_ORIGINS: {{ join "," .cardKeyOrigins | quote }}
RIALTO_MAX_AGENTS_PER_ORG: {{ int64 .maxAgentsPerOrg | quote }}
RIALTO_MAX_OPEN_TASKS_PER_ORG: {{ int64 .maxOpenTasks.perOrg | quote }}
RIALTO_MAX_OPEN_TASKS: {{ int64 .maxOpenTasks.all | quote }}
RIALTO_AGENTS_DIR: {{ .agentsDir | quote }}
RIALTO_LOG_LEVEL: {{ .logLevel | quote }}
{{- end }}
RIALTO_QUEUE_PREFIX: {{ ternary .Values.queue.keyPrefix "" (eq .Values.queue.backend "redis") | quote }}
RIALTO_CONFIG_FILE: {{ ternary "/etc/rialto/rialto.config.json" "" (not (empty (include "rialto.configFile" .))) | quote }}
PORT: "3000"
METRICS_PORT: {{ ternary (int .Values.metrics.port | toString) "0" .Values.metrics.enabled | quote }}
GRPC_PORT: {{ ternary (int .Values.grpc.port | toString) "" .Values.grpc.enabled | quote }}
OTEL_EXPORTER_OTLP_ENDPOINT: {{ .Values.otel.endpoint | quote }}
{{- end -}}

{{/* Every variable of an app container: dict root, role. */}}
{{- define "rialto.env" -}}
{{- $secrets := .root.Values.secrets -}}
{{- $keys := $secrets.keys -}}
{{ include "rialto.databaseEnv" .root }}
{{- if eq .root.Values.queue.backend "redis" }}
{{ include "rialto.secretEnv" (dict "name" "REDIS_URL" "secret" (.root.Values.queue.existingSecret | default $secrets.existingSecret) "key" $keys.redisUrl) }}
{{- end }}
{{- if $keys.a2aSecret }}
{{ include "rialto.secretEnv" (dict "name" "A2A_SECRET" "secret" $secrets.existingSecret "key" $keys.a2aSecret) }}
{{- end }}
{{ include "rialto.secretEnv" (dict "name" "RIALTO_ENCRYPTION_KEY" "secret" $secrets.existingSecret "key" $keys.encryptionKey) }}
{{- if $keys.adminPassword }}
{{ include "rialto.secretEnv" (dict "name" "RIALTO_ADMIN_PASSWORD" "secret" $secrets.existingSecret "key" $keys.adminPassword "optional" true) }}
{{- end }}
- name: RIALTO_ROLE
  value: {{ ternary .role "all" .root.Values.worker.enabled }}
{{- range $name, $value := include "rialto.plainSettings" .root | fromYaml }}
{{- if and (ne $value "") (not (and (eq $name "GRPC_PORT") (eq $.role "worker"))) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- with .root.Values.podDefaults.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
