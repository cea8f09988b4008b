{{/* Objects are named after the release, as `memctl cluster secrets --name` names the Secrets. */}}

{{- define "mneme.labels" -}}
app.kubernetes.io/name: {{ .Release.Name }}
{{ include "mneme.common" . }}
{{- end }}

{{/* Labels of objects that select no pods. A test knows those that deploy/k8s does not have. */}}
{{- define "mneme.common" -}}
app.kubernetes.io/part-of: mneme
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "mneme.selector" -}}
app.kubernetes.io/name: {{ .Release.Name }}
{{- end }}

{{- define "mneme.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag }}{{ end }}
{{- end }}

{{- define "mneme.secret.tls" -}}{{ .Values.secrets.tls | default (printf "%s-tls" .Release.Name) }}{{- end }}
{{- define "mneme.secret.keys" -}}{{ .Values.secrets.keys | default (printf "%s-keys" .Release.Name) }}{{- end }}
{{- define "mneme.secret.peers" -}}{{ .Values.secrets.peers | default (printf "%s-peers" .Release.Name) }}{{- end }}

{{/* "true" where there are several nodes, and where the log is in the pods. */}}
{{- define "mneme.cluster" -}}{{ if gt (int .Values.replicas) 1 }}true{{ end }}{{- end }}
{{- define "mneme.embedded" -}}{{ if eq .Values.nats.mode "embedded" }}true{{ end }}{{- end }}

{{- define "mneme.settings" -}}
{{- range $name, $value := .Values.settings }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- if not (include "mneme.embedded" .) }}
MNEME_NATS_URL: {{ join "," .Values.nats.urls | quote }}
MNEME_NATS_MONITOR: {{ join "," .Values.nats.monitors | quote }}
MNEME_NATS_CREDS: /etc/mneme/nats/node.creds
MNEME_NATS_CA: /etc/mneme/nats/ca.crt
{{- end }}
{{- end }}

{{/* memctl in a pod of its own: its program, what it asks the service with, and what it may. */}}
{{- define "mneme.memctl.program" -}}
image: {{ include "mneme.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command:
  - memctl
{{- end }}

{{- define "mneme.memctl.env" -}}
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: MNEME_ADDR
  value: https://{{ .Release.Name }}.$(POD_NAMESPACE).svc:8787
- name: MNEME_CONNECT_TIMEOUT # a network may let a new pod through only after a moment
  value: 30s
- name: MNEME_TLS_CA
  value: /etc/mneme/tls/ca.crt
- name: MNEME_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ include "mneme.secret.keys" . }}
      key: operator.token
{{- end }}

{{- define "mneme.memctl.may" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop:
      - ALL
{{- end }}

{{/* The container of a pod that declares something. */}}
{{- define "mneme.memctl.container" -}}
{{ include "mneme.memctl.program" . }}
env:
  {{- include "mneme.memctl.env" . | nindent 2 }}
resources:
  requests:
    cpu: 50m
    memory: 64Mi
  limits:
    memory: 256Mi
{{ include "mneme.memctl.may" . }}
volumeMounts:
  - name: tls
    mountPath: /etc/mneme/tls
    readOnly: true
  - name: declared
    mountPath: /etc/mneme/declared
    readOnly: true
{{- end }}

{{- define "mneme.memctl.pod" -}}
restartPolicy: Never
serviceAccountName: {{ .Release.Name }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
{{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
{{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "mneme.memctl.volumes" -}}
- name: tls
  projected:
    defaultMode: 0400
    sources:
      - secret:
          name: {{ include "mneme.secret.tls" . }}
          items:
            - key: ca.crt
              path: ca.crt
{{- end }}
