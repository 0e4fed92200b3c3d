{{/* Everything that is wrong with the values, at once, each line with its fix. A schema cannot see these. */}}
{{- define "rialto.problems" -}}
{{- $problems := list -}}
{{- $values := .Values -}}
{{- if not $values.image.repository -}}
{{- $problems = append $problems "image.repository is empty: set it to where your build of the Dockerfile is kept, e.g. registry.example.com/rialto" -}}
{{- end -}}
{{- if and (not $values.image.digest) (has $values.image.tag (list "latest" "main" "master" "edge" "dev" "nightly" "stable" "nonroot")) -}}
{{- $problems = append $problems (printf "image.tag %s moves: name a version, or set image.digest" $values.image.tag) -}}
{{- end -}}
{{- if not $values.secrets.existingSecret -}}
{{- $problems = append $problems (printf "secrets.existingSecret is empty: make the Secret with `rialto secrets init --namespace %s | kubectl apply -f -` and set its name" .Release.Namespace) -}}
{{- end -}}
{{- if not $values.config.publicUrl -}}
{{- $problems = append $problems "config.publicUrl is empty: set the address others reach the gateway at, e.g. https://rialto.example.com" -}}
{{- end -}}
{{- range $name, $address := dict "config.publicUrl" $values.config.publicUrl "otel.endpoint" $values.otel.endpoint -}}
{{- if regexMatch "//[^/]*@" $address -}}
{{- $problems = append $problems (printf "%s carries credentials: values are no place for them, take them out" $name) -}}
{{- end -}}
{{- end -}}
{{- if and $values.ingress.enabled (not $values.ingress.hosts) -}}
{{- $problems = append $problems "ingress.hosts is empty: name at least one host, or set ingress.enabled=false" -}}
{{- end -}}
{{- if $values.httpRoute.enabled -}}
{{- if not $values.httpRoute.parentRefs -}}
{{- $problems = append $problems "httpRoute.parentRefs is empty: name the Gateway, e.g. [{name: public, namespace: gateways}]" -}}
{{- end -}}
{{- if not (.Capabilities.APIVersions.Has "gateway.networking.k8s.io/v1") -}}
{{- $problems = append $problems "httpRoute.enabled needs the Gateway API, which this cluster lacks: install its CRDs (for helm template: --api-versions gateway.networking.k8s.io/v1), or use ingress" -}}
{{- end -}}
{{- end -}}
{{- range $name, $enabled := dict "monitoring.serviceMonitor" $values.monitoring.serviceMonitor.enabled "monitoring.rules" $values.monitoring.rules.enabled -}}
{{- if $enabled -}}
{{- if not ($.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") -}}
{{- $problems = append $problems (printf "%s.enabled needs the Prometheus operator, which this cluster lacks: install its CRDs (for helm template: --api-versions monitoring.coreos.com/v1), or set it to false" $name) -}}
{{- end -}}
{{- if not $values.metrics.enabled -}}
{{- $problems = append $problems (printf "%s.enabled needs metrics.enabled: set it to true" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq $values.profile "ha" -}}
{{- range $name, $enabled := dict "pdb.enabled" $values.pdb.enabled "networkPolicy.enabled" $values.networkPolicy.enabled "worker.enabled" $values.worker.enabled -}}
{{- if not $enabled -}}
{{- $problems = append $problems (printf "%s=false contradicts profile=ha: set it to true, or profile to standard" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "rialto.roleProblems" . | fromYamlArray | concat $problems | toYaml -}}
{{- end -}}

{{- define "rialto.roleProblems" -}}
{{- $problems := list -}}
{{- range $role := list "api" "worker" -}}
{{- $values := index $.Values $role -}}
{{- $sleep := ternary $values.preStopSleepSeconds 0 (eq $role "api") | int -}}
{{- if lt (int $values.terminationGracePeriodSeconds) (add $sleep 30) -}}
{{- $problems = append $problems (printf "%s.terminationGracePeriodSeconds is too short to drain: set %d or more" $role (add $sleep 30)) -}}
{{- end -}}
{{- if eq $values.autoscaling.mode "hpa" -}}
{{- $least := include "rialto.leastReplicas" (dict "root" $ "role" $role) | int -}}
{{- if gt $least (int $values.autoscaling.maxReplicas) -}}
{{- $problems = append $problems (printf "%s.autoscaling.maxReplicas is below the least of %d: raise it" $role $least) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $port := dict "metrics.port" (ternary .Values.metrics.port 0 .Values.metrics.enabled) "grpc.port" (ternary .Values.grpc.port 0 .Values.grpc.enabled) -}}
{{- if eq (int $port) 3000 -}}
{{- $problems = append $problems (printf "%s is 3000, the port of the doors: choose another" $name) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.metrics.enabled .Values.grpc.enabled (eq (int .Values.metrics.port) (int .Values.grpc.port)) -}}
{{- $problems = append $problems "metrics.port and grpc.port are the same: choose another for one of them" -}}
{{- end -}}
{{- include "rialto.envProblems" . | fromYamlArray | concat $problems | toYaml -}}
{{- end -}}

{{- define "rialto.envProblems" -}}
{{- $problems := list -}}
{{- $extra := dict -}}
{{- $owned := list "NODE_ENV" "RIALTO_ROLE" "DATABASE_URL" "RIALTO_DATABASE_DIRECT_URL" "REDIS_URL" "A2A_SECRET" "RIALTO_ENCRYPTION_KEY" "RIALTO_ADMIN_PASSWORD" -}}
{{- $owned = concat $owned (include "rialto.plainSettings" . | fromYaml | keys) -}}
{{- range .Values.podDefaults.extraEnv -}}
{{- $_ := set $extra .name . -}}
{{- if has .name $owned -}}
{{- $problems = append $problems (printf "podDefaults.extraEnv names %s, which the chart sets: use its value instead (see values.yaml)" .name) -}}
{{- else if and (hasKey . "value") (regexMatch "(SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?|API_?KEY|PRIVATE_KEY)$" .name) -}}
{{- $problems = append $problems (printf "podDefaults.extraEnv gives %s a literal value: use valueFrom.secretKeyRef" .name) -}}
{{- end -}}
{{- end -}}
{{- $needed := list -}}
{{- with .Values.bootstrap.apiKeyEnv -}}{{- $needed = append $needed . -}}{{- end -}}
{{- range .Values.bootstrap.agents -}}
{{- range $key, $value := .credential | default (dict) -}}
{{- if hasSuffix "Env" $key -}}{{- $needed = append $needed $value -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range regexFindAll "\\$\\{(env:)?[A-Za-z_][A-Za-z0-9_]*\\}" (.Values.bootstrap.mcpServers | toJson) -1 -}}
{{- $needed = append $needed (. | trimPrefix "${" | trimPrefix "env:" | trimSuffix "}") -}}
{{- end -}}
{{- if not .Values.podDefaults.extraEnvFrom -}}
{{- range uniq $needed -}}
{{- if not (hasKey $extra .) -}}
{{- $problems = append $problems (printf "bootstrap names the variable %s, which no pod has: add it to podDefaults.extraEnv with valueFrom.secretKeyRef" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (not .Values.secrets.keys.a2aSecret) (not .Values.bootstrap.apiKeyEnv) -}}
{{- $problems = append $problems "secrets.keys.a2aSecret is empty: name the key of A2A_SECRET, or set bootstrap.apiKeyEnv" -}}
{{- end -}}
{{- $problems | toYaml -}}
{{- end -}}
