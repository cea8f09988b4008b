package redact

import (
	"regexp"
	"strings"
	"sync"
)

// Secrets that stand as options of programs, in forms of tokens that gitleaks has no rule
// for, and in files of a form of their own.

// sameCommand is what may stand between a program and its option: no end of the command, but
// a line that goes on.
const sameCommand = `(?:[^\n;&|]|\\\r?\n)*?`

// argument is what stands behind an option: quoted, or up to white space.
const argument = `\\?(?:"([^"\n\\]{3,})|'([^'\n\\]{3,})|([^\s"'\\-][^\s"'\\]{2,}))`

// options are those of programs that take a secret by one letter, which means another thing
// to other programs.
var options = []rule{
	{id: "option-password", words: []string{"curl"}, compiled: new(compiled),
		pattern: `(?:^|\s)(?:-[a-zA-Z]*[uU]|--user|--proxy-user)(?:\s*|=)\\?(?:"[^":\n]*:([^"\n\\]{3,})|'[^':\n]*:([^'\n\\]{3,})|[^\s:"'\\-][^\s:"'\\]*:([^\s"'\\]{3,}))`,
		unless:  noSecret + `|^\d+$`},
	{id: "option-password", words: []string{"mysql", "mariadb"}, compiled: new(compiled),
		pattern: `(?i:\b(?:mysql|mariadb))` + sameCommand + `\s-p` + argument, unless: noSecret},
	{id: "option-password", words: []string{"sshpass"}, compiled: new(compiled), pattern: `(?i:\bsshpass)\s+(?:-[a-zA-Z]\S*\s+)*?-p\s*` + argument, unless: noSecret},
	{id: "option-password", words: []string{"login"}, compiled: new(compiled),
		pattern: `(?i:\b(?:docker|podman|nerdctl|buildah|skopeo|helm|oras|crane|az|oc|cf|npm|registry|argocd|vault|ibmcloud)\b)` + sameCommand + `(?i:\blogin)` + sameCommand + `\s-p[ =]?` + argument, unless: noSecret},
	{id: "option-password", words: []string{"redis-cli", "valkey-cli"}, compiled: new(compiled), pattern: `(?i:\b(?:redis|valkey)-cli)` + sameCommand + `\s-a\s+` + argument, unless: noSecret},
	{id: "option-password", words: []string{"mongo"}, compiled: new(compiled), pattern: `(?i:\bmongo)` + sameCommand + `\s-p\s*` + argument, unless: noSecret},
	{id: "option-password", words: []string{"sqlcmd", "unzip ", "zip "}, compiled: new(compiled), pattern: `(?i:\b(?:sqlcmd|unzip|zip))` + sameCommand + `\s-P\s*` + argument, unless: noSecret},
	{id: "option-password", words: []string{"ldap"}, compiled: new(compiled), pattern: `(?i:\bldap(?:search|modify|add|delete|passwd|whoami))` + sameCommand + `\s-w\s*` + argument, unless: noSecret},
}

// ofWhat may stand behind the word for a secret, and keyLike is what has the length and the letters of a key.
const (
	ofWhat  = `(?:[ \t]+(?:for|of|to)(?:[ \t]+[^\s:=]+){1,4}?)?`
	keyLike = `[ \t]+["'\x60]?([A-Za-z0-9+/_=-]{24,})`
)

// told are secrets in sentences that say whose they are, or name them beside who signs in. Without a sign
// between, or with many words, only what looks like a secret is one.
var told = []rule{
	{id: "password", words: []string{"password", "passphrase", "passcode", "pwd"}, compiled: new(compiled),
		pattern: `(?i)\b(?:password|passphrase|passcode|pwd)[ \t]+(?:for|of|to|on|in|at)(?:[ \t]+[^\s:=]+){1,6}?(?:[ \t]*:\s+|[ \t]*=[ \t]*|[ \t]+(?:is|was)[ \t]+)` + value,
		unless:  noSecret + `|^https?:|^[0-9a-z]+:/`, accepts: hasDigitAndLetter},
	{id: "password", words: []string{"pass ", "pw ", "pwd "}, compiled: new(compiled),
		pattern: `(?i)\b(?:pass|pw|pwd)[ \t]+([^\s"'\x60/(){}\[\]<>=,;:@&$%-][^\s"'\x60/(){}\[\]<>=,;:@&]{5,})`, accepts: hasAllSigns},
	{id: "password", words: []string{"login", "log-in", "credential", "creds"}, compiled: new(compiled),
		pattern: `(?i)\b(?:log-?ins?|credentials?|creds)(?:[ \t]+(?:for|of|to|on)(?:[ \t]+[^\s:=]+){1,4}?)?(?:[ \t]*[:=]|[ \t]+(?:is|are|was|were))[ \t]+[^\s/]+[ \t]+/[ \t]+([^\s/"'\x60,;]{6,})`,
		unless:  noSecret, accepts: hasDigitAndLetter},
	{id: "secret-value", words: []string{" key", "secret", "token"}, entropy: 4, compiled: new(compiled),
		pattern: `(?i)\b(?:key` + ofWhat + `[ \t]+(?:is|was)|(?:secret|token)` + ofWhat + `(?:[ \t]+(?:is|was))?)` + keyLike, accepts: func(s string) bool { return hasAllKinds(s) && !joinedWords(s) }},
	{id: "secret-value", words: []string{"passphrase"}, entropy: 4, compiled: new(compiled), // which words may be
		pattern: `(?i)\bpassphrase` + ofWhat + `(?:[ \t]+(?:is|was))?` + keyLike, accepts: hasAllKinds},
}

func hasAllKinds(s string) bool { return hasDigitAndCapital(s) && hasSmall(s) }

func hasSmall(s string) bool { return strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyz") }

func hasDigitAndLetter(s string) bool { return hasDigit(s) && hasSmall(lower(s)) }

// hasAllSigns tells a password from words and names that stand behind "pass".
func hasAllSigns(s string) bool {
	s = strings.TrimRight(s, ".!?")
	return hasAllKinds(s) && strings.ContainsAny(s, "!#$%^*?~+")
}

// words are those of names in programs and paths: of four letters or more, with a capital at most in front, or in
// capitals between signs or digits.
var words = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:\b|\d)[A-Z]{4,}(?:\b|\d)|[A-Z][a-z]{3,}|[a-z]{4,}`)
})

// joinedWords tells a name such as userSessionById or auth/OAuth2Token from a key: three in five of its letters and
// digits, and of each long part between its signs, stand in words with a vowel. Of random strings of 24 characters
// that is so for one in 400, of 40 for one in 5,000.
func joinedWords(s string) bool {
	const longPart = 12
	all, inWords := 0, 0
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("+/_=-", r) }) {
		n := 0
		for _, w := range words().FindAllString(part, -1) {
			if strings.ContainsAny(w, "aeiouyAEIOUY") {
				n += len(strings.Trim(w, "0123456789"))
			}
		}
		if len(part) >= longPart && 5*n < 3*len(part) {
			return false
		}
		all, inWords = all+len(part), inWords+n
	}
	return 5*inWords >= 3*all
}

// tokens are known by how they begin or by what stands around them.
var tokens = []rule{
	{id: "mneme-token", words: []string{"mneme_"}, compiled: new(compiled), pattern: `\bmneme_[A-Za-z0-9_-]{40,}`, accepts: hasDigitAndCapital},
	{id: "jwt", words: []string{"eyj"}, compiled: new(compiled), pattern: `\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{10,}`}, // whatever stands behind it
	{id: "stripe-webhook-secret", words: []string{"whsec_"}, compiled: new(compiled), pattern: `\bwhsec_[A-Za-z0-9+/=_-]{16,}`},
	{id: "docker-token", words: []string{"dckr_"}, compiled: new(compiled), pattern: `\bdckr_[po]at_[A-Za-z0-9_-]{16,}`},
	{id: "anthropic-token", words: []string{"sk-ant-"}, compiled: new(compiled), pattern: `\bsk-ant-[A-Za-z0-9_-]{16,}`},
	{id: "openai-token", words: []string{"sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-"}, compiled: new(compiled), pattern: `\bsk-(?:proj|svcacct|admin|or)-[A-Za-z0-9_-]{16,}`, accepts: hasDigit},
	{id: "google-access-token", words: []string{"ya29."}, compiled: new(compiled), pattern: `\bya29\.[A-Za-z0-9_-]{16,}`},
	{id: "aws-bedrock-token", words: []string{"bedrock-api-key-"}, compiled: new(compiled), pattern: `\bbedrock-api-key-[A-Za-z0-9+/=_-]{16,}`},
	{id: "discord-webhook", words: []string{"api/webhooks/"}, compiled: new(compiled), pattern: `(?i)/api/webhooks/\d{5,}/([A-Za-z0-9_-]{20,})`},
	{id: "discord-bot-token", words: []string{"discord", "bot "}, compiled: new(compiled), pattern: `\b[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}`},
	{id: "telegram-bot-token", words: []string{":aa"}, compiled: new(compiled), pattern: `\d{6,12}:AA[A-Za-z0-9_-]{32,36}`},
	{id: "azure-sas", words: []string{"sig="}, compiled: new(compiled), pattern: `(?i)(?:[?&;]|\b)sig=([A-Za-z0-9%+/=_-]{20,})`},
	{id: "jwk", words: []string{"kty"}, compiled: new(compiled), pattern: `"(?:d|k|p|q|dp|dq|qi)\\?"\s*:\s*\\?"([A-Za-z0-9_-]{20,})`},
	{id: "netrc", words: []string{"machine", "default"}, compiled: new(compiled), pattern: `(?i)\b(?:machine\s+[\w.:-]+|default)\s+login\s+\S+\s+(?:account\s+\S+\s+)?password\s+(\S{3,})`, unless: noSecret},
	{id: "pgpass", words: []string{":543", ":6432:", ":*:"}, compiled: new(compiled), pattern: `(?m)(?:[\w.*-]+):(?:543\d|6432|\*):[^\s:]+:[^\s:]+:((?:[^\s"':]|\\:){3,})`, unless: noSecret},
	{id: "password-hash", words: []string{"$1$", "$5$", "$6$", "$7$", "$y$", "$2a$", "$2b$", "$2y$", "$apr1$", "$argon2", "$scrypt$", "$pbkdf2"}, compiled: new(compiled),
		pattern: `\$(?:[1567y]|2[aby]|apr1|argon2(?:id|i|d)|scrypt|pbkdf2[\w-]*)\$[./A-Za-z0-9$=,+-]{20,}`},
	{id: "password", words: []string{"password>", "passwd>", "passphrase>", "pwd>", "secret>", "token>", "apikey>"}, compiled: new(compiled),
		pattern: `(?i)<(?:\w+:)?[\w.-]*(?:password|passwd|passphrase|pwd|secret|token|apikey)(?:\s[^<>]*)?>\s*([^<\s][^<]{2,})</`, unless: noSecret},
	{id: "password", words: []string{"password", "passwd", "passphrase", "secret", "token"}, compiled: new(compiled),
		pattern: `(?i)(?:password|passwd|passphrase|secret|token)s?["']?:[ \t]*\r?\n((?:[ \t]*-[ \t]+\S{4,}[ \t]*\r?\n)*[ \t]*-[ \t]+\S{4,})[ \t]*(?:\r?\n|\z)`, accepts: hasDigit},
	{id: "password", words: []string{"variable"}, compiled: new(compiled),
		pattern: `(?i)\bvariable\s+"[^"\n]*(?:pass|pwd|secret|token|key|credential)[^"\n]*"\s*\{[^}]*?\bdefault\s*=\s*"([^"\n]{4,})"`, unless: noSecret},
	{id: "password", words: []string{"passwort", "kennwort", "contrase", "mot de passe", "senha", "wachtwoord", "пароль", "Пароль", "ПАРОЛЬ", "パスワード", "비밀번호"}, compiled: new(compiled),
		pattern: `(?i)(?:passwort|kennwort|contrase(?:ñ|n)a|mot de passe|senha|wachtwoord|пароль|パスワード|비밀번호)[\w.-]{0,30}["']?\s*(?:=|:|：|は|는|은)\s*` + value, unless: noSecret},
	{id: "password", words: []string{"passwort", "kennwort", "contrase", "mot de passe", "senha", "wachtwoord"}, compiled: new(compiled),
		pattern: `(?i)(?:passwort|kennwort|contrase(?:ñ|n)a|mot de passe|senha|wachtwoord)(?:\s+\S+){0,4}?\s+(?:ist|lautet|war|es|est|é|is)\s+` + value, accepts: hasDigit},
}

func hasDigitAndCapital(s string) bool {
	return hasDigit(s) && strings.ContainsAny(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
}
