package redact

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// TestSecretsAreTakenOut: each canary is a secret that is made up, in the surroundings in
// which tools print such.
func TestSecretsAreTakenOut(t *testing.T) {
	for _, c := range []struct{ text, secret string }{
		{"aws_access_key_id = AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"},
		{"export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"},
		{"remote: https://x:ghp_abcdefghijklmnopqrstuvwxyz0123456789@github.com/a/b", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"},
		{"token ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa used", "ghp_aaaa"},
		{"slack xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx", "AbCdEfGhIjKlMnOpQrStUvWx"},
		{"key: sk-ant-api03-" + strings.Repeat("aB3-", 23) + "aAA", "aB3-aB3-aB3"},
		{"jwt eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c", "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"},
		{"-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA1234\n-----END RSA PRIVATE KEY-----", "MIIEowIBAAKCAQEA1234"},
		{"cut off: -----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nabc", "b3BlbnNzaC1rZXktdjEAAAAA"},
		{"DATABASE_URL=postgres://app:hunter22@db1:5432/app", "hunter22"},
		{"connect with amqp://u:p4ss%40word@mq/", "p4ss%40word"},
		{`{"password":"correct horse","user":"ann"}`, "correct"},
		{`"{\"password\":\"s3cr3tvalue\"}"`, "s3cr3tvalue"},
		{"DB_PASSWORD: 'tr0ub4dor'", "tr0ub4dor"},
		{"my password is hunter2, do not tell", "hunter2"},
		{"the passphrase for the vault was opensesame9", "opensesame9"},
		{"数据库密码是 Tr0ub4dor&3。", "Tr0ub4dor&3"},
		{"mysql --password hunter22 -u root", "hunter22"},
		{"mysql --password=hunter22", "hunter22"},
		{"Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"},
		{`curl -H "Authorization: Bearer abc123def456ghi789"`, "abc123def456ghi789"},
		{"Set-Cookie: session=5f2a9b7c1d; HttpOnly", "5f2a9b7c1d"},
		{"client_secret = 9f8e7d6c5b4a", "9f8e7d6c5b4a"},
		{"MNEME_TOKEN=f00dfeedf00dfeed", "f00dfeedf00dfeed"},
		{"the api key is a1b2c3d4e5f6", "a1b2c3d4e5f6"},
		{"password for staging: tiger-lily-42", "tiger-lily-42"},
		{"the password for the staging database is qX9-lily-42.", "qX9-lily-42"},
		{"the password of ann on the old build machine was 'hunter 22'", "hunter 22"},
		{"passphrase for the signing key = opensesame9", "opensesame9"},
		{"user root pass Xy7!kkq2", "Xy7!kkq2"},
		{"ann, pw Xy7!kkq2.", "Xy7!kkq2"},
		{"login is admin / Summer2026!", "Summer2026!"},
		{"the credentials for the wiki are ann / Summer2026", "Summer2026"},
		{"login: admin / Summer2026", "Summer2026"},
		{"aws key is wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"},
		{"the key for the mirror was wJalrXUtnFEMI-K7MDENG-bPxRfiCY", "wJalrXUtnFEMI"},
		{"my key is AKIAIOSFODNN7EXAMPLE and the secret wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"},
		{"card 4111 1111 1111 1111 exp 12/30", "4111 1111 1111 1111"},
		{"card 5500-0000-0000-0004", "5500-0000-0000-0004"},
	} {
		got, found := Text(c.text, Options{})
		if strings.Contains(got, c.secret) || len(found) == 0 || !strings.Contains(got, "[redacted:") {
			t.Errorf("%q gives %q by %v", c.text, got, found)
		}
		around, _ := Text(strings.Repeat("some words before. ", 500)+c.text+strings.Repeat(" words behind.\n", 500), Options{})
		if strings.Contains(around, c.secret) {
			t.Errorf("%q is not taken out of a long text", c.secret)
		}
		if again, more := Text(got, Options{}); again != got || len(more) > 0 {
			t.Errorf("%q is redacted again: %q by %v", got, again, more)
		}
	}
}

// TestWhatIsMarkedLikeASecretIsNoHidingPlace: only the name of a rule in whole brackets stands
// for a secret that was replaced.
func TestWhatIsMarkedLikeASecretIsNoHidingPlace(t *testing.T) {
	const token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	for _, s := range []string{
		"[redacted:" + token, "[redacted:" + token + "]", "[redacted: " + token + "]", "[redacted:password " + token + "]",
		"[redacted:password]" + token, "password=[redacted:" + token + "]", "password=x[redacted:card]" + token,
		"Cookie: a=[redacted:jwt]; b=" + token,
	} {
		got, found := Text(s, Options{})
		if strings.Contains(got, token) || len(found) == 0 {
			t.Errorf("%q gives %q by %v", s, got, found)
		}
	}
	for s, want := range map[string]string{
		"password: [redacted:card]hunter22":                        "password: [redacted:password]",
		"db1:5432:shop:ann:Winter2026[redacted:card] is it":        "db1:5432:shop:ann:[redacted:pgpass] is it",
		"mysql -h [redacted:card] -pWinter2026 shop":               "mysql -h [redacted:card] -p[redacted:option-password] shop",
		"curl -u [redacted:email]:Winter2026 https://x.example":    "curl -u [redacted:option-password] https://x.example",
		"[redacted:card] password=Winter2026; [redacted:password]": "[redacted:card] password=[redacted:password]; [redacted:password]",
	} {
		if got, found := Text(s, Options{}); got != want {
			t.Errorf("%q became %q by %v, not %q", s, got, found, want)
		}
	}
	for _, s := range []string{"[redacted:password]", "password: [redacted:password], token=[redacted:secret-value];", "Bearer [redacted:bearer-token]", "Cookie: [redacted:jwt];"} {
		if got, found := Text(s, Options{}); got != s {
			t.Errorf("%q became %q by %v", s, got, found)
		}
	}
}

func TestOtherTextsStay(t *testing.T) {
	for _, s := range []string{
		"", "we decided to use Postgres", "the password is required", "the password was changed yesterday",
		"password: $DB_PASSWORD and password=${PW} and password: <yours>", "set MNEME_TOKEN or --token-file FILE",
		"my name is Ann, mail ann@example.com, phone +491701234567", "max_tokens: 4096, tokenizer: cl100k_base",
		"commit 17e9f64b2c1d5a7e8f9012345678901234567890 fixes it", "id 01JC2Y3K5V8Q0T4W6X7Z9A1B2C", "order 4111 1111 1111 1112",
		"https://example.com/a:b?x=y", "api_key = os.Getenv(\"KEY\")", "the primary key is the id", "部署在周二，密码策略另议",
		"the password for staging: see the vault", "the password for staging is in 1password", "the password for the staging database is rotated every 90 days", "the password of ann was changed on 2026-11-01",
		"password for staging: https://wiki.example/page12", "password for staging: $STAGING_PASSWORD2", "the password for staging: <yours1>", "password of the user: required, 12 characters",
		"pass Go1.26 to it", "PASS TestLease2 (0.01s)", "you pass Level1!", "pass -DFoo=1 to cmake", "pass x509Certificate, not Foo2", "pass https://A.example/b?c=1", "we pass ann@Host1.example", "pass &Config{X1: !true}",
		"login is by SSO / OIDC", "login is v1 / v2", "login: GET /api/v2 / POST /api/v3", "the login page is /login / /signin2", "credentials are read / written",
		"the cache key is userAccountOfTheShop", "the secret ingredient_of_the_year_2026_again is salt", "a token ABCDEFGHIJKLMNOPQRSTUVWXYZ1234 of capitals", "the primary key is order_id_of_the_year_2026", "the key is commit 17e9f64b2c1d5a7e8f9012345678901234567890", "the key is 17e9f64b2c1d5a7e8f9012345678901234567890",
		"the key is 01JC2Y3K5V8Q0T4W6X7Z9A1B2C", "the sort key is 0f6c1a2e-7a1b-4c6e-9a0e-3f8d5b2c1a00", "what key is pressed",
		"time 1795168800000000000", "session_id 0f6c1a2e-7a1b-4c6e-9a0e-3f8d5b2c1a00", "token: refresh", "the secret is patience",
	} {
		if got, found := Text(s, Options{}); got != s || len(found) > 0 {
			t.Errorf("%q became %q by %v", s, got, found)
		}
	}
}

// TestHalfASecretWasLeftWhereATextWasCut: in whatever place that is, and also if it goes on in
// the next line.
func TestHalfASecretWasLeftWhereATextWasCut(t *testing.T) {
	const n, token = 500, "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	for _, secret := range []string{token, token[:34] + "\n" + token[34:]} {
		line := "the program printed this on the terminal " + secret + " for it"
		for _, end := range []int{n, n + beyond} {
			for at := end - len(line) - 5; at <= end; at++ {
				text := strings.Repeat("x ", at/2) + strings.Repeat("y", at%2) + ".\n" + line + strings.Repeat(" and more", beyond)
				got, cut, _ := Head(text, n, Options{})
				if strings.Contains(got, token[:12]) || !cut || len(got) > n || strings.Contains(got, "[") && !anyRule.MatchString(got) {
					t.Fatalf("%d bytes before it leave %q", at, got)
				}
			}
		}
	}
	key := "keep the key\n\n-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(base64Line, 100)
	if got, cut, found := Head(key, n, Options{}); got != "keep the key\n\n[redacted:private-key-block]" || !cut || len(found) != 1 {
		t.Errorf("%q, %v by %v", got, cut, found)
	}
	for _, s := range []string{"", "short", strings.Repeat("ü", n/2)} {
		if got, cut, _ := Head(s, n, Options{}); got != s || cut {
			t.Errorf("%q became %q", s, got)
		}
	}
	if got, cut, _ := Head("x"+strings.Repeat("ü", n), n, Options{}); len(got) != n-1 || !cut || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestEmailsWhereAsked(t *testing.T) {
	got, found := Text("write to ann.b+c@mail.example.com.", Options{Emails: true})
	if got != "write to [redacted:email]." || !slices.Equal(found, []string{"email"}) {
		t.Errorf("%q by %v", got, found)
	}
}

func TestConcurrently(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got, _ := Text("xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx password: hunter22", Options{}); strings.Contains(got, "hunter22") || strings.Contains(got, "AbCd") {
					t.Error(got)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzText(f *testing.F) {
	f.Add("password: hunter22 -----BEGIN PRIVATE KEY----- x")
	f.Add("token=abc AKIAIOSFODNN7EXAMPLE\xff [redacted:x] [redacted:")
	f.Fuzz(func(t *testing.T, s string) {
		got, found := Text(s, Options{Emails: true})
		if (got != s) != (len(found) > 0) {
			t.Errorf("%q became %q by %v", s, got, found)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("%q became %q", s, got)
		}
	})
}

func BenchmarkText(b *testing.B) {
	for name, text := range map[string]string{
		"prompt": strings.Repeat("why does the lease of node three expire early ", 5),
		"output": strings.Repeat("=== RUN TestLease/token_key\n--- PASS: TestLease (0.01s) at /home/u/proj/auth.go:12\n", 700),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Text(text, Options{})
			}
		})
	}
}
