package redact

import (
	"slices"
	"strings"
	"testing"
)

// base64Line is a line of a key without its first and last.
const base64Line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n"

// TestSecretsOfProgramsAreTakenOut: in an agent's transcript stand commands, their files and
// what they printed.
func TestSecretsOfProgramsAreTakenOut(t *testing.T) {
	for _, c := range []struct{ text, secret, rule string }{
		{"curl -u admin:Winter2026! https://x.example", "Winter2026!", "option-password"},
		{"curl -sSu admin:Winter2026 https://x.example", "Winter2026", ""},
		{`curl --user "admin:Winter 2026!" https://x.example`, "Winter 2026!", ""},
		{"curl -s \\\n  --user=admin:Win/ter2026 \\\n  https://x.example", "Win/ter2026", ""},
		{"mysql -uroot -pWinter2026 shop", "Winter2026", "option-password"},
		{"mysqldump -h db1 -u root -p'Winter 2026' shop > a.sql", "Winter 2026", "option-password"},
		{"docker exec db mariadb-dump -uroot \\\n -pWinter2026 shop", "Winter2026", "option-password"},
		{"docker login -u ann -p Winter2026 registry.example", "Winter2026", "option-password"},
		{"helm registry login r.example -u ann -p=Winter2026", "Winter2026", "option-password"},
		{"az login --service-principal -u app -p Winter2026 --tenant t", "Winter2026", "option-password"},
		{"sshpass -p Winter2026 ssh ann@host", "Winter2026", "option-password"},
		{"sshpass -p'Winter2026' scp -P 2222 a ann@host:", "Winter2026", "option-password"},
		{"redis-cli -h cache -a Winter2026 ping", "Winter2026", "option-password"},
		{"mongosh -u ann -p Winter2026 shop", "Winter2026", "option-password"},
		{"sqlcmd -S db -U sa -P Winter2026", "Winter2026", "option-password"},
		{"unzip -P Winter2026 a.zip", "Winter2026", "option-password"},
		{"ldapsearch -x -D cn=admin -w Winter2026 uid=ann", "Winter2026", "option-password"},

		{base64Line + "AoIBAQC7VJTUt9Us8cKjMzEfYyjiWA4R4\n-----END PRIVATE KEY-----", "MIIEvQIBADANBg", "private-key-block"},
		{base64Line + "VJTUt9==\n-----END RSA PRIVATE KEY-----", "VJTUt9==", "private-key-block"},
		{"AoIBAQC7VJTUt9Us8cKj\n-----END RSA PRIVATE KEY-----", "AoIBAQC7VJTUt9Us8cKj", "private-key-block"},
		{"it says\n" + strings.Repeat(base64Line, 3) + "and so on", "MIIEvQIBADANBg", "private-key-block"},
		{strings.ReplaceAll(strings.Repeat(base64Line, 3), "\n", `\n`), "MIIEvQIBADANBg", "private-key-block"},
		{"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\nAAAAgQCqa3\nPrivate-MAC: 00ff00ff", "AAAAgQCqa3", "putty-private-key"},

		{"use mneme_Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE here", "mneme_Zm9v", "mneme-token"},
		{"whsec_5f2a9b7c1dAbCdEf5f2a9b7c1d", "5f2a9b7c1d", "stripe-webhook-secret"},
		{"dckr_pat_AbCdEf0123456789AbCdEf01234", "AbCdEf", "docker-token"},
		{"sk-ant-oat01-" + strings.Repeat("aB3_", 20), "aB3_aB3_", "anthropic-token"},
		{"sk-proj-" + strings.Repeat("aB3_", 10), "aB3_aB3_", "openai-token"},
		{"ya29.a0AfH6SMBx-1234567890_abc", "a0AfH6SMBx", "google-access-token"},
		{"bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29tLz9BY3Rpb249Q2FsbFdpdGg", "Lz9BY3Rpb249Q2FsbFdpdGg", "aws-bedrock-token"},
		{"https://discord.com/api/webhooks/123456789012345678/AbCdEf0123456789-AbCdEf_0123456789", "AbCdEf0123456789", "discord-webhook"},
		{"discord says MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", "ZnCjm1XVW7", "discord-bot-token"},
		{"https://api.telegram.org/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1/getMe", "AAHdqTcvCH1v", "telegram-bot-token"},
		{"https://a.blob.core.windows.net/c?sv=2024&sp=r&sig=AbC%2Bdef0123456789%2FghiJKL%3D", "AbC%2Bdef", "azure-sas"},
		{`{"kty":"EC","crv":"P-256","d":"870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE"}`, "870MB6gfuTJ4", "jwk"},
		{"machine github.com login ann password Winter2026", "Winter2026", "netrc"},
		{"machine github.com\n  login ann\n  password Winter2026", "Winter2026", "netrc"},
		{"db1.example:5432:shop:ann:Winter2026", "Winter2026", "pgpass"},
		{"*:*:*:ann:Winter2026", "Winter2026", "pgpass"},
		{"root:$6$saltsalt$IxDD3jeSOb5eB1CX5LBsqZFVkJdido3OUILO5Ifz5iwMuTS4XMS130MTSuDDl3aCI6WouIL9AjRbLCelDCy.g.:19000", "IxDD3jeSOb5", "password-hash"},
		{"ann:$2y$10$abcdefghijklmnopqrstuuJ8yqRrKwPYC4cQZm6LrC1qB7xYv5kWu", "abcdefghijklmnop", "password-hash"},
		{"<db><password>Winter 2026</password></db>", "Winter 2026", "password"},
		{`<s:dbPassword type="text">Winter2026</s:dbPassword>`, "Winter2026", "password"},
		{"passwords:\n  - Winter2026\n  - Summer2026\nusers:", "Summer2026", "password"},
		{"variable \"db_password\" {\n  type = string\n  default = \"Winter 2026\"\n}", "Winter 2026", "password"},
		{"user: ann, pw: Winter2026", "Winter2026", "password"},
		{"DB_PW=Winter2026", "Winter2026", "password"},
		{`pass := "Winter2026"`, "Winter2026", "password"},
		{"pass: Winter2026", "Winter2026", "password"},
		{"DB_PASS=Winter2026", "Winter2026", "password"},
		{"  DB_PASS: Winter2026", "Winter2026", "password"},
		{`{"PASS":"Winter2026"}`, "Winter2026", "password"},
		{`dbPass = "Winter2026"`, "Winter2026", "password"},
		{"password=Winter,Summer,2026", "Summer", "password"},
		{`password = "Winter and summer"`, "summer", "password"},
		{`"{\"password\": \"Winter and summer\"}"`, "summer", "password"},
		{"das Passwort lautet Winter2026", "Winter2026", "password"},
		{"Passwort: Winter", "Winter", "password"},
		{"la contraseña es Winter2026", "Winter2026", "password"},
		{"le mot de passe de la base est Winter2026", "Winter2026", "password"},
		{"Пароль: Winter2026", "Winter2026", "password"},
		{"git clone https://aB3dE6gH9jK2mN5pQ8@git.example/a/b", "aB3dE6gH9jK2", "url-token"},
		{"postgres://ann:Win/ter2026@db1/shop", "ter2026", "url-password"},
		{"card 4111\u00a01111\u00a01111\u00a01111", "1111\u00a01111", "card"},
		{"card 2223003122003222", "2223003122003222", "card"},
		{"ghp_abcdefghijkl\u200bmnopqrstuvwxyz\u20600123456789", "mnopqrstuvwxyz", "github-pat"},
		{"Bearer abcDEF123456ghi", "abcDEF123456ghi", "bearer-token"},
	} {
		got, found := Text(c.text, Options{})
		if strings.Contains(got, c.secret) || c.rule != "" && !strings.Contains(got, "[redacted:"+c.rule+"]") {
			t.Errorf("%q gives %q by %v, not by %s", c.text, got, found, c.rule)
		}
		if again, more := Text(got, Options{}); again != got {
			t.Errorf("%q is redacted again: %q by %v", got, again, more)
		}
		for _, s := range []string{c.text + "\n\n" + c.text, "some words before\n" + c.text + "\nand behind: " + c.text + "\n."} {
			if got, found := Text(s, Options{}); strings.Contains(got, c.secret) {
				t.Errorf("%q gives %q by %v", s, got, found)
			}
		}
	}
}

func TestHarmlessTextsOfProgramsStay(t *testing.T) {
	for _, s := range []string{
		"docker run -d -p 8080:80 -u 1000:1000 nginx", "docker run -p8080:80 --name login nginx", "ssh -p 2222 ann@host", "curl -u root https://x.example",
		"mysql -u root -p shop",
		"mysql -u root -p", "mysql -h db1 -P 3306 -uroot; ssh -p2222 host", "mkdir -p some/dir && cp -p a b", "docker login registry.example && mkdir -p some/dir",
		"sshpass -e ssh -p 2222 host", "sshpass -f file ssh host", "redis-cli -h cache ping", "ls -a some", "docker login --password-stdin",
		"commit 17e9f64b2c1d5a7e8f9012345678901234567890", "0f6c1a2e-7a1b-4c6e-9a0e-3f8d5b2c1a00",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		strings.Repeat("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n", 4),
		strings.Repeat("=", 70) + "\n" + strings.Repeat("a", 70) + "\n" + strings.Repeat("a", 70) + "\n", "https://proxy.golang.org/github.com/!burnt!sushi/toml/@v/v1.5.0.info",
		"mneme_vector_recall_ratio and mneme_erasing_since_timestamp_seconds_in_all_namespaces", "whsec_ is the prefix", "set sk-ant-... or sk-proj-<yours>",
		"internal/redact/own.go:5432:12: undefined: value", "the machine needs a login and a password", "machine learning, login page, password field",
		"listens at 127.0.0.1:5432: refused", "costs $6 and $5$ a day", "it cost $1$ a piece", "<label for=password>Password</label>", "<password></password>",
		"passwords:\n  - must be long\n  - must be changed yearly", "tokens:\n  - refresh\n  - access", "variable \"region\" {\n  default = \"eu-west-1\"\n}",
		"variable \"db_password\" {\n  type = string\n}", "pw is short for password", "das Passwort ist falsch", "le mot de passe est requis", "la contraseña es incorrecta",
		"the password policy asks for 12 characters", "password=$A,$B", "func login(user, password string) error", "ssh://git@github.com/a/b.git",
		"https://registry.example:443/@scope/package", "http://localhost:3000/a@b", `if password == "" || user == "" {`, "4111\n1111\n1111\n1112",
		"--- PASS: TestLease (0.01s)\nPASS: tests/lease.sh\nPASS\nok  \tmneme", "it is not passed: nine of ten", "passage := strings.Repeat(x)", "pr, pw := io.Pipe()",
		"two passes: first that, then this", "bypass: always",
		"\ufeffa family \U0001F468\u200d\U0001F469\u200d\U0001F467 and a soft\u00adhyphen", "kty is the type of the key, d its secret part", "zip -r a.zip dir", "Bearer authentication is used", "the bearer of bad news",
	} {
		if got, found := Text(s, Options{}); got != s || len(found) > 0 {
			t.Errorf("%q became %q by %v", s, got, found)
		}
	}
}

// TestNamesInSentencesPassedForKeys: names of programs stand behind "key", "secret" and "token" in ordinary sentences,
// and a capture without them has lost its point for good.
func TestNamesInSentencesPassedForKeys(t *testing.T) {
	for _, s := range []string{
		"The cache key userSessionByTenantIdAndRegionV2 expires", "The cache key is userSessionByTenantIdAndRegionV2", "the i18n key checkoutPage_payButton2_labelLong is missing",
		"The secret kubernetes/ProdCluster2/payments-db is mounted", "the API token OrdersServiceReadOnlyTokenV2 is revoked", "see the token internal/auth/OAuth2TokenExchange",
		"the secret aws/secretsmanager/ProdDb01/password is read at start", "token CSRFTokenValidationFilterV2 runs first", "the secret TENANT_SIGNING_SECRET_V2_forTests", "the secret `Sha256TokenHasherFactory` is made there",
		"the primary key wJalrXUtnFEMI-K7MDENG-bPxRfiCY is made of two columns", // a key that nobody says to be one
	} {
		if got, found := Text(s, Options{}); got != s || len(found) > 0 {
			t.Errorf("%q became %q by %v", s, got, found)
		}
	}
	for _, c := range []struct{ text, secret string }{
		{"the secret for the staging mirror xK9vQ2mTz7LpR4wYb8NcJd3F works", "xK9vQ2mTz7LpR4wYb8NcJd3F"},
		{"the token internal/services/payments/xK9vQ2mTz7LpR4wY", "xK9vQ2mTz7LpR4wY"}, // words do not hide what stands behind them
		{"the token production_database_password_xK9vQ2mTz7LpR4wY", "xK9vQ2mTz7LpR4wY"},
		{"my key of the mirror was xK9vQ2mTz7LpR4wYb8NcJd3F", "xK9vQ2mTz7LpR4wYb8NcJd3F"},
		{"the token xK9v-Q2mT-z7Lp-R4wY-b8Nc-Jd3F", "xK9v-Q2mT"},
		{"the passphrase WanderingKobolds7JuggleQuickly", "Kobolds"}, // words are what it is made of
	} {
		if got, found := Text(c.text, Options{}); strings.Contains(got, c.secret) || !slices.Equal(found, []string{"secret-value"}) {
			t.Errorf("%q gives %q by %v", c.text, got, found)
		}
	}
}

// TestWordsOfRulesInCapitals: words are looked for in small letters of A to Z, both included.
func TestWordsOfRulesInCapitals(t *testing.T) {
	if got := lower("AZaz@[`{ÄЯ"); got != "azaz@[`{ÄЯ" {
		t.Error(got)
	}
	for _, c := range []struct{ text, secret string }{
		{"PASSWORD: WINTER2026", "WINTER2026"}, {"AUTHORIZATION: BASIC DXNLCJPWYXNZ", "DXNLCJPWYXNZ"}, {"BEARER ABCDEF123456GHI", "ABCDEF123456GHI"},
		{"SSHPASS -p Winter2026 ssh host", "Winter2026"}, {"PUTTY-USER-KEY-FILE-3: x\nAAAAgQCqa3", "AAAAgQCqa3"},
		{"-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEA1234", "MIIEowIBAAKCAQEA1234"}, {"PASSWORT: WINTER2026", "WINTER2026"}, {"ПАРОЛЬ: WINTER2026", "WINTER2026"},
		{"ZXlKaGJHY2lPaUpJVXpJMU5pSXNJblI1Y0NJNklrcFhWQ0o5LmV5SnpkV0lpT2lJeE1qTTBOVFkzT0Rrd0luMC5TZmxLeHdSSlNNZUtLRjJRVDRmd3BNZUpmMzZQT2s2eUpWX2FkUXNzdzVj", "SlNNZUtLRjJRVDRm"},
	} {
		if got, found := Text(c.text, Options{}); strings.Contains(got, c.secret) {
			t.Errorf("%q gives %q by %v", c.text, got, found)
		}
	}
}

// TestNamesAreToldOnce: several rules have one name.
func TestNamesAreToldOnce(t *testing.T) {
	got, found := Text("password: Winter2026\nthe password is Summer2026\nPasswort: Herbst2026\npassword: Win\u200bter2026", Options{})
	if !slices.Equal(found, []string{"password"}) || strings.Contains(got, "2026") {
		t.Errorf("%q by %v", got, found)
	}
}

// TestKeysAreLookedForFirst: another rule's find within a key would leave its rest.
func TestKeysAreLookedForFirst(t *testing.T) {
	for text, want := range map[string]string{
		"a\n-----BEGIN PRIVATE KEY-----\npassword: Winter2026\nMIIEvQIBADAN\n-----END PRIVATE KEY-----\nb": "a\n[redacted:private-key-block]\nb",
		"password: -----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN":                                              "password: [redacted:private-key-block]",
		"PuTTY-User-Key-File-2: x\nComment: token=f00dfeedf00dfeed\nAAAA\nPrivate-MAC: 00ff b":             "[redacted:putty-private-key] b",
	} {
		if got, found := Text(text, Options{}); got != want {
			t.Errorf("%q became %q by %v, not %q", text, got, found, want)
		}
	}
}

// TestOnlyRulesThatWordsCallForAreTried: a rule is compiled when it is tried first.
func TestOnlyRulesThatWordsCallForAreTried(t *testing.T) {
	const text = "why does the lease of node three expire early, as in commit 17e9f64b2c1d5a7e8f9012345678901234567890"
	for _, table := range tables {
		for _, r := range table {
			if r.mayFind(text) && r.id != "card" {
				t.Errorf("%s %v is tried for a text without its words", r.id, r.words)
			}
		}
	}
}
