package redact

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
)

var anyRule = regexp.MustCompile(`\[redacted:[a-z0-9-]+\]`)

// TestSecretsBrokenOverLinesPassed: no part of them is left, whatever broke them.
func TestSecretsBrokenOverLinesPassed(t *testing.T) {
	const jwt = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
	for _, c := range []struct{ text, want string }{
		{"the program printed this on a terminal: use ghp_abcdefghijklmnopq\nrstuvwxyz0123456789 for it", "the program printed this on a terminal: use [redacted] for it"},
		{"the program printed this on a terminal: use ghp_abcdefghijklmnopqrstuvwxyz0123456\r\n789 for it", "the program printed this on a terminal: use [redacted] for it"},
		{"the program printed this on a terminal: the key AKIAIOSF\nODNN7EXAMPLE is", "the program printed this on a terminal: the key [redacted] is"},
		{"Authorization: Bearer\n " + jwt, "Authorization: Bearer\n [redacted]"},
		{"curl -H 'Authorization: Bearer " + jwt[:48] + "\n" + jwt[48:] + "' https://x.example", "curl -H 'Authorization: Bearer [redacted]' https://x.example"},
		{"the program printed this on a terminal: it was " + jwt[:40] + "\n" + jwt[40:80] + "\n" + jwt[80:] + ", he said", "the program printed this on a terminal: it was [redacted], he said"},
		{"API_KEY=\\\n  a1b2c3d4e5f6\nREGION=eu", "API_KEY=\\\n  [redacted]\nREGION=eu"},
		{"API_KEY=a1b2c3\\\nd4e5f6 make", "API_KEY=[redacted] make"},
		{"password=Win\\\nter make it", "password=[redacted] make it"},
		{"Authorization: Basic dXNlcjpwYXNzd29yZDEyMzQ1Njc4\nOTAxMjM0NTY3ODkw\nHost: x", "Authorization: Basic [redacted]\nHost: x"},
		{"data:\n  token: ZXlKaGJHY2lPaUpJVXpJMU5p\n    SXNJblI1Y0NJNklr\n    cFhWQ0o5==\nkind: Secret", "data:\n  token: [redacted]\nkind: Secret"},
		{"it connects with host=db1.internal user=app password=Winter\n2026Sommer and goes on", "it connects with host=db1.internal user=app password=[redacted] and goes on"},
		{"$ psql postgres://application:Winter2026\nSommer2027@db1.internal/shop", "$ psql postgres://application:[redacted]@db1.internal/shop"},
		{"the program printed this on a terminal: mneme_Zm9vYmFyYmF6cXV4Zm9v\nYmFyYmF6cXV4Zm9vYmFyYmE\nand on", "the program printed this on a terminal: [redacted]\nand on"},
		{"> the program printed this on a terminal: use ghp_abcdefghijklmnop\n> qrstuvwxyz0123456789", "> the program printed this on a terminal: use [redacted]"},
		{"│ the program printed this on a terminal: use ghp_abcdefghijklmnop │\n│ qrstuvwxyz0123456789 │", "│ the program printed this on a terminal: use [redacted] │"},
		{"+" + jwt[:60] + "\n+" + jwt[60:], "+[redacted]"},
		{"# " + jwt[:60] + "\n# " + jwt[60:], "# [redacted]"},
		{"t = \"ghp_abcdefghijklmnop\" +\n  \"qrstuvwxyz0123456789\"", "t = \"[redacted]\""},
		{"t = 'ghp_abcdefghijklmnop'\n  + 'qrstuvwxyz0123456789';", "t = '[redacted]';"},
		{"the program printed this in a mail, which is quoted: ghp_abcdefghijklmnop=\nqrstuvwxyz0123456789 and on", "the program printed this in a mail, which is quoted: [redacted] and on"},
		{"$env:T = \"ghp_abcdefghijklmnop`\nqrstuvwxyz0123456789\"", "$env:T = \"[redacted]\""},
		{"the program printed this on a terminal: use ghp_abcdefghijklmnop\nqrstuvwxyz0123456789: it is good", "the program printed this on a terminal: use [redacted]: it is good"},
		{"4111111111111\\\n111 is a card", "[redacted] is a card"},
		{"the program printed this on a terminal: card 41111111\n11111111", "the program printed this on a terminal: card [redacted]"},
		{"the program printed this on a terminal: card 4111 1111 1111\n1111 is", "the program printed this on a terminal: card [redacted] is"},
	} {
		opts := Options{}
		got, found := Text(c.text, opts)
		if anyRule.ReplaceAllString(got, "[redacted]") != c.want || len(found) == 0 {
			t.Errorf("%q became %q by %v, not %q", c.text, got, found, c.want)
		}
		if again, more := Text(got, Options{}); again != got {
			t.Errorf("%q is redacted again: %q by %v", got, again, more)
		}
		around := "first-line of node3\n" + c.text + "\nand Last_line of node4\nis this"
		got, _ = Text(around, opts)
		if got = anyRule.ReplaceAllString(got, "[redacted]"); !strings.Contains(got, c.want) || !strings.HasPrefix(got, "first-line of node3\n") || !strings.HasSuffix(got, "\nand Last_line of node4\nis this") {
			t.Errorf("within others %q became %q", around, got)
		}
	}
}

// TestALongSecretOverManyLinesTookTheSquareOfItsLength: what four times the text makes is about
// four times as much.
func TestALongSecretOverManyLinesTookTheSquareOfItsLength(t *testing.T) {
	for name, part := range map[string]string{"jwt": "eyJ", "anthropic": "sk-ant-", "password": "password=", "cookie": "cookie: "} {
		made := func(lines int) uint64 {
			text := strings.Repeat("a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5\n", lines)
			if name == "jwt" {
				text = text + "." + part + text + "." + text
			}
			text = "it says " + part + text
			_, _ = Text(text, Options{}) // has the rules compiled
			var before, behind runtime.MemStats
			runtime.ReadMemStats(&before)
			got, found := Text(text, Options{})
			runtime.ReadMemStats(&behind)
			if len(found) != 1 || len(got) > 100 {
				t.Errorf("%s of %d lines became %d bytes by %v", name, lines, len(got), found)
			}
			return behind.TotalAlloc - before.TotalAlloc
		}
		if short, long := made(150), made(600); long > 8*short {
			t.Errorf("%s: %d bytes are made of 150 lines, and %d of 600", name, short, long)
		}
	}
}

// TestWhatStandsBelowASecretStays: a line that begins something is no end of the one before it.
func TestWhatStandsBelowASecretStays(t *testing.T) {
	for text, want := range map[string]string{
		"MNEME_TOKEN=f00dfeedf00dfeed\nAWS_REGION=eu-west-1":                                  "MNEME_TOKEN=[redacted:secret-value]\nAWS_REGION=eu-west-1",
		"MNEME_TOKEN=f00dfeedf00dfeed\n17e9f64 fix the lease":                                 "MNEME_TOKEN=[redacted:secret-value]\n17e9f64 fix the lease",
		"password: hunter22\nuser1: ann":                                                      "password: [redacted:password]\nuser1: ann",
		"password: hunter22\n--port 8787":                                                     "password: [redacted:password]\n--port 8787",
		"passwords:\n  - Winter2026\n  - Summer2026\nusers:":                                  "passwords:\n[redacted:password]\nusers:",
		"AKIAIOSFODNN7EXAMPLE\nAKIAIOSFODNN7EXAMPLF":                                          "[redacted:aws-access-token]\n[redacted:aws-access-token]",
		"it connects with host=db1.internal user=app password=Winter2026\nThen it goes on":    "it connects with host=db1.internal user=app password=[redacted:password]\nThen it goes on",
		"mysql -u root \\\n  -pWinter2026 \\\n  shop3":                                        "mysql -u root \\\n  -p[redacted:option-password] \\\n  shop3",
		"PASSWORD_FILE=/run/secrets/db_password_1\n/run/secrets/other_2":                      "PASSWORD_FILE=[redacted:password]\n/run/secrets/other_2",
		"it is in the middle of the line, token=refresh_1\nv2.3.4-rc1 is out":                 "it is in the middle of the line, token=[redacted:secret-value]\nv2.3.4-rc1 is out",
		"the first line of it is as long as that and holds token=f00dfeedf00dfeed\nit is so2": "the first line of it is as long as that and holds token=[redacted:secret-value]\nit is so2",
	} {
		if got, found := Text(text, Options{}); got != want {
			t.Errorf("%q became %q by %v, not %q", text, got, found, want)
		}
	}
	for _, s := range []string{
		"make test-all2 \\\n  GOFLAGS=-race \\\n  PKG=./internal/hooks", "use the token\nrefresh1 then", "internal/hooks/run_test.go\ninternal/redact/own_test.go",
		"commit 17e9f64b2c1d5a7e8f90\n12345678901234567890", "4111\n1111\n1111\n1111", "the secret2\nis patience1", "key1 =\\\n  ${KEY2}", "password=\\\n  $PASSWORD2",
		"ok  \tmneme/internal/hooks\t0.12s\nok  \tmneme/internal/redact\t0.34s", "set sk-ant-\nor sk-proj-2", "the last line of what the program says ends in 4111\n2026-11-26 10:34 is the next",
		"+ the token of the first line is patience1\n+ key2 is another", "> the name of the token is in its_file_1.txt\n> and other_2", "see `the_token1`\nand other2", "errors.New(\"password: \" +\n\t\"must have 8 characters\")", "x := f(\"token: \") + g(1)\n\"other1\"", "a_token\\", "a_token\\\n", "a_token1\n\n\nb_token2\n",
	} {
		if got, found := Text(s, Options{}); got != s || len(found) > 0 {
			t.Errorf("%q became %q by %v", s, got, found)
		}
	}
}

// TestCertificatesWereTakenForKeys: they are for everybody to read. What stands beside them in
// the same shape is not.
func TestCertificatesWereTakenForKeys(t *testing.T) {
	lines := strings.Repeat(base64Line, 4)
	block := func(what string) string {
		return "-----BEGIN " + what + "-----\n" + lines + "AoIBAQC7VJTUt9==\n-----END " + what + "-----\n"
	}
	for _, what := range []string{"CERTIFICATE", "TRUSTED CERTIFICATE", "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST", "X509 CRL", "PUBLIC KEY", "RSA PUBLIC KEY", "PGP PUBLIC KEY BLOCK", "PGP SIGNATURE", "DH PARAMETERS"} {
		for _, text := range []string{"it is\n" + block(what) + "and ends", block(what) + block(what), strings.ReplaceAll(block(what), "\n", `\n`), strings.ReplaceAll(block(what), "\n", "\r\n"),
			"it was cut:\n-----BEGIN " + what + "-----\n" + lines} {
			if got, found := Text(text, Options{}); got != text || len(found) > 0 {
				t.Errorf("%q became %q by %v", text, got, found)
			}
		}
	}
	for text, want := range map[string]string{
		block("CERTIFICATE") + block("PRIVATE KEY"):       block("CERTIFICATE") + "[redacted:private-key-block]\n",
		block("PRIVATE KEY") + block("CERTIFICATE"):       "[redacted:private-key-block]\n" + block("CERTIFICATE"),
		block("CERTIFICATE") + "\n" + lines + ". And":     block("CERTIFICATE") + "\n[redacted:private-key-block]. And",
		block("SOMETHING ELSE"):                           "-----BEGIN SOMETHING ELSE-----\n[redacted:private-key-block]\n-----END SOMETHING ELSE-----\n",
		"-----BEGIN CERTIFICATE-----\nnot yet.\n" + lines: "-----BEGIN CERTIFICATE-----\nnot yet.\n[redacted:private-key-block]",
	} {
		if got, found := Text(text, Options{}); got != want {
			t.Errorf("%q became %q by %v, not %q", text, got, found, want)
		}
	}
}
