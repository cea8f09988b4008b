package redact

import (
	"regexp"
	"strings"
	"sync"
)

const emailRule = "email"

// blocks are looked for first, so that no other rule cuts one up. A key whose end is missing
// reaches to the end of the text, one whose beginning is missing over the lines of base64
// before its end.
var blocks = []rule{
	{id: "private-key-block", words: []string{"private key"}, compiled: new(compiled),
		pattern: `(?is)-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END[ A-Z0-9_-]{0,100}-----|\z)`},
	{id: "private-key-block", words: []string{"private key"}, compiled: new(compiled),
		pattern: `(?:[A-Za-z0-9+/=]{16,}(?:\s|\\[rn])+)*(?:[A-Za-z0-9+/=]{1,76}(?:\s|\\[rn])+)?-----END[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----`},
	{id: "private-key-block", when: hasBase64Lines, compiled: new(compiled),
		pattern: `(?:[A-Za-z0-9+/]{60,76}(?:\s|\\[rn])+){2,}[A-Za-z0-9+/]{0,76}={0,2}`, accepts: isBase64, apart: isPublic},
	{id: "putty-private-key", words: []string{"putty-user-key-file"}, compiled: new(compiled),
		pattern: `(?is)PuTTY-User-Key-File-\d.*?(?:Private-MAC: *[0-9a-f]+|\z)`},
}

// value is what stands behind a name and a sign: all that is quoted, or up to white space.
const value = `(?:"([^"\n\\]{4,})"|'([^'\n\\]{4,})'|\\"([^"\n\\]{4,})\\"|\\?["'\x60]?([^\s"'\x60\\,;](?:[^\s"'\x60\\,;]|,[^\s"'\x60\\,;]){3,}))`

// noSecret is what stands for a value that lies elsewhere, or is none.
const noSecret = `(?i)^(?:\$|%\w+%|<|\{|\(|\*+$|x{4,}$|\.{3}|os\.|process\.|env\.|secrets?\.|vault:|file:|none\b|null\b|nil\b|true\b|false\b|undefined\b|string\b|required\b|optional\b|missing\b|invalid\b|wrong\b|empty\b|error\b)`

// own are the rules that gitleaks has no like of.
var own = []rule{
	{id: "url-password", words: []string{"://"}, compiled: new(compiled),
		pattern: `(?i)\b[a-z][a-z0-9+.-]*://[^\s/:@"']*:(?:([^\s/"']+)|([^\s"'@]+))@`, unless: `^(?:\$|<|\{|\*+$|\d+/)`},
	{id: "url-token", words: []string{"://"}, compiled: new(compiled),
		pattern: `(?i)\b[a-z][a-z0-9+.-]*://([^\s/:@"'?#]{16,})@`, accepts: hasDigit},
	{id: "authorization", words: []string{"authorization"}, compiled: new(compiled),
		pattern: `(?i)\bauthorization\\?["']?\s*[:=]\s*\\?["']?(?:(?:bearer|basic|token|digest|apikey)\s+)?([^\s"',\\]{6,})`, unless: noSecret},
	{id: "bearer-token", words: []string{"bearer"}, compiled: new(compiled),
		pattern: `(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{12,})`, accepts: hasDigit},
	{id: "cookie", words: []string{"cookie"}, compiled: new(compiled),
		pattern: `(?i)\b(?:set-)?cookie\\?["']?:\s*([^\r\n"']{8,})`},
	{id: "password", words: []string{"password", "passwd", "passphrase", "passcode", "pwd"}, compiled: new(compiled),
		pattern: `(?i)(?:password|passwd|passphrase|passcode|pwd)[\w.-]{0,30}\\?["'\x60]?\s*(?::=|=>|==?|:)\s*` + value, unless: noSecret},
	// What tests print is "PASS: TestName", and what Go writes "pass := f()".
	{id: "password", words: []string{"pass", "pw"}, compiled: new(compiled),
		pattern: `(?:(?:\b|_)(?i:pass|pw)|[a-z]P(?:ass|w))\s*:=\s*(?:"([^"\n]{4,})"|'([^'\n]{4,})'|\x60([^\x60\n]{4,})\x60)`, unless: noSecret},
	{id: "password", words: []string{"pass", "pw"}, compiled: new(compiled),
		pattern: `(?:(?:(?:\b|_)(?i:pass|pw)|[a-z]P(?:ass|w))\\?["'\x60]?\s*=[=>]?\s*|(?:_(?i:pass|pw)|\b(?:[Pp]ass|(?i:pw))|[a-z]P(?:ass|w)|["'](?i:pass|pw))\\?["'\x60]?:\s*)` + value, unless: noSecret + `|^=`},
	{id: "password", words: []string{"password", "passphrase", "passcode"}, compiled: new(compiled),
		pattern: `(?i)\b(?:password|passphrase|passcode)(?:\s+(?:for|of|to|on)\s+\S+(?:\s+\S+)?)?\s+(?:is|was)\s+` + value,
		unless:  `(?i)^(?:required|wrong|incorrect|invalid|never|missing|expired|reset|stored|kept|always|empty|hashed|encrypted|read|taken|changed|correct|that|this|then|also|only|still|needed|asked|used|sent|given|shown|unknown|about|rotated|weak|strong|long|short|there|here|going|being|case|your|from|what|\[redacted)`},
	{id: "password", words: []string{"密码", "口令", "密钥"}, compiled: new(compiled),
		pattern: `(?:密码|口令|密钥)\s*(?:是|为|:|：|=)\s*([!-~]{4,})`},
	{id: "secret-option", words: []string{"--pass", "--token", "--secret", "--api"}, compiled: new(compiled),
		pattern: `(?i)--(?:password|passwd|passphrase|token|secret|api-?key|access-key|secret-key)(?:\s+|=)\\?["']?([^\s"'\\-][^\s"'\\]{3,})`, unless: noSecret},
	{id: "secret-value", words: []string{"secret", "token", "key", "credential"}, compiled: new(compiled),
		pattern: `(?i)(?:secret|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key|signing[_-]?key|encryption[_-]?key|client[_-]?key|credentials?)s?(?:[_-][\w-]{0,20})?\\?["'\x60]?\s*(?::=|=>|==?|:)\s*\\?["'\x60]?([^\s"'\x60\\,;(){}\[\]]{8,})`,
		unless:  noSecret, accepts: randomLooking},
	{id: "secret-value", words: []string{"secret", "token", "key"}, compiled: new(compiled),
		pattern: `(?i)\b(?:secret|token|api key|access key|secret key)\s+(?:is|was)\s+` + value, accepts: func(s string) bool { return len(s) >= 8 && hasDigit(s) }},
	{id: "card", compiled: new(compiled), pattern: `\b[2-6]\d{3}(?:[ \x{a0}\x{202f}-]?\d){8,15}\b`, accepts: luhn},
	{id: emailRule, words: []string{"@"}, compiled: new(compiled), pattern: `[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.\w{2,}`},
}

// public begins what is base64 for everybody to read: certificates, requests for one, public
// keys, signatures.
var public = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ ){0,3}(?:CERTIFICATE(?: REQUEST)?|X509 CRL|PUBLIC KEY(?: BLOCK)?|SIGNATURE|PARAMETERS|PKCS7|CMS)-----(?:\s|\\[rn]|[A-Za-z0-9+/=])*\\?$`)
})

// isPublic reports whether what stands at a place is within a block that is no secret.
func isPublic(text string, at int) bool {
	head := strings.LastIndex(text[:at], "-----BEGIN ")
	return head >= 0 && public().MatchString(text[head:at])
}

// isBase64 tells lines of base64 from those of sums in hexadecimal, names and rules of signs.
func isBase64(s string) bool {
	return hasDigit(s) && strings.ContainsAny(s, "GHIJKLMNOPQRSTUVWXYZ") && strings.ContainsAny(s, "ghijklmnopqrstuvwxyz")
}

// hasBase64Lines reports whether some run of characters is as long as a line of base64.
func hasBase64Lines(s string) bool {
	run := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/':
			if run++; run >= 60 {
				return true
			}
		default:
			run = 0
		}
	}
	return false
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// randomLooking tells a value from a number, a word or a name made of words.
func randomLooking(s string) bool {
	if strings.Trim(s, "0123456789.,:-") == "" {
		return false
	}
	return hasDigit(s) || len(s) >= 16 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz-_./:") != ""
}

// luhn is the check of the numbers of cards, of 13 to 19 digits.
func luhn(s string) bool {
	sum, n := 0, 0
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] < '0' || s[i] > '9' {
			continue
		}
		d := int(s[i] - '0')
		if n%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
		n++
	}
	return n >= 13 && n <= 19 && sum%10 == 0
}
