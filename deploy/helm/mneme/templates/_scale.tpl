{{/* What a change of the number alone would break is refused, with the steps that do it. */}}
{{- define "mneme.mayscale" -}}
{{- $set := lookup "apps/v1" "StatefulSet" .Release.Namespace .Release.Name }}
{{- if $set }}
{{- $now := int $set.spec.replicas }}
{{- $want := int .Values.replicas }}
{{- if gt $now $want }}
{{- fail (printf "the StatefulSet %s has %d replicas and the values say %d: nodes are taken away one after the other, and each is then removed from the cluster; see \"From five to three\" in docs/operate/install.md, or say replicas: %d" .Release.Name $now $want $now) }}
{{- end }}
{{- if and (eq $now 1) (gt $want 1) }}
{{- fail (printf "the StatefulSet %s has one node on its own, which a number does not make a cluster of %d: see \"From one node to three\" in docs/operate/install.md" .Release.Name $want) }}
{{- end }}
{{- end }}
{{- end }}
