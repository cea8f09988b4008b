package text

import (
	"slices"
	"strings"
	"testing"
)

// TestLanguages: a sentence is of the language whose function words it has; names, code and
// English are of none, whatever words of others they look like.
func TestLanguages(t *testing.T) {
	for s, want := range map[string]string{
		"Die Datenbankverbindung ist gestern Nacht abgebrochen.": "german",
		"Fehler beim Starten": "german",
		"Warum?":              "german",
		"Les déploiements ont lieu le mardi, parce que l'équipe est là":     "french",
		"erreur de connexion à la base":                                     "french",
		"La conexión con la base de datos falló anoche.":                    "spanish",
		"¿Por qué falló la conexión?":                                       "spanish",
		"La connessione al database è caduta ieri notte":                    "italian",
		"A implantação falhou porque o certificado não era válido":          "portuguese",
		"De verbinding met de database is vannacht verbroken":               "dutch",
		"Anslutningen till databasen bröts i natt":                          "swedish",
		"Forbindelsen til databasen blev afbrudt i nat, og ikke før":        "danish",
		"Tilkoblingen til databasen ble brutt i natt, og ingen vet hvorfor": "norwegian",
		"Tietokantayhteys katkesi yöllä mutta palautui":                     "finnish",
		"A kapcsolat megszakadt, mert az adatbázis nem válaszolt":           "hungarian",
		"Conexiunea s-a întrerupt pentru că baza de date nu este pornită":   "romanian",
		"Veritabanı bağlantısı dün gece koptu ama sonra düzeldi":            "turkish",
		"": "",
		"The database connection broke last night.":     "",
		"when do we deploy":                             "",
		"set locale de":                                 "",
		"AMI update failed":                             "",
		"az aks create fails":                           "",
		"var fooHead listHead":                          "",
		"https://example.de/der/die/das?und=oder":       "",
		"jon@mail.example.com, die_der_das, der.den.de": "",
		"DIE DER DAS":                                   "",
		"数据库的连接池已经用完了":                                  "",
		"мы перенесли серверы в другой город": "",
		"pods die at night": "",
		"die roller":        "",
		"we ship in two regions, us and eu; el capitan is old and the le mans cluster too": "",
	} {
		a := NewAnalysis(s)
		got := ""
		if l, _ := a.language(); l != none {
			got = languages[l].name
		}
		if got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

// TestFunctionWords: the lists hold words of one piece, and none that the analyzer leaves out
// tells a language.
func TestFunctionWords(t *testing.T) {
	if len(languages) > markBit {
		t.Fatalf("%d languages have no room in %d bits", len(languages), markBit)
	}
	for _, l := range languages {
		marks := strings.Fields(l.marks)
		for _, w := range append(marks, strings.Fields(l.others)...) {
			if len(Fold(w)) > maxFunctionWord {
				t.Errorf("%s: %q is too long to be looked up", l.name, w)
			}
		}
		for i, w := range marks {
			if words := NewAnalysis(w).Words; len(words) != 1 || words[0].Kind != KindWord {
				t.Errorf("%s: %q is not a word of the analyzer: %v", l.name, w, words)
			}
			if slices.Contains(marks[:i], w) || slices.Contains(strings.Fields(l.others), w) {
				t.Errorf("%s: %q is listed twice", l.name, w)
			}
		}
	}
}

// TestStems: two forms of a word have a term in common, in a text and in a question of
// its language, and a function word is marked.
func TestStems(t *testing.T) {
	for _, c := range []struct{ text, query, term string }{
		{"Die Verbindungen sind abgebrochen", "Warum ist die Verbindung weg", "verbind"},
		{"Die Überprüfungen laufen nicht", "ist die Überprüfung durch", "uberpruf"},
		{"Die Überprüfungen laufen nicht", "ist die Ueberpruefung durch", "ueberpruef"},
		{"Les déploiements ont lieu le mardi", "quand est le déploiement", "deploi"},
		{"L'erreur est dans le journal", "quelles erreurs avons nous", "erreur"},
		{"L’erreur est dans le journal", "quelles erreurs avons nous", "erreur"},
		{"Los servidores fallaron porque se llenaron los discos", "por qué falló el servidor", "servidor"},
		{"L'errore dell'archivio è nei registri della notte", "dove sono gli errori", "error"},
		{"Anslutningarna till databasen är brutna", "varför är anslutningen borta", "anslutning"},
		{"мы перенесли серверы", "серверов", "сервер"},
	} {
		for _, s := range []string{c.text, c.query} {
			if terms := IndexTerms(s); !slices.Contains(terms, c.term) {
				t.Errorf("%q has no %q: %q", s, c.term, terms)
			}
		}
	}
	var functions []string
	Index("Warum ist die Verbindung zum Archiv weg", func(tok Token) bool {
		if tok.Function {
			functions = append(functions, tok.Term)
		}
		return true
	})
	for _, s := range []string{"Ella phone number", "los angeles office", "Van Gogh print", "nas backup schedule", "der encoding certificates", "Fehler beim Starten"} {
		Index(s, func(tok Token) bool {
			if tok.Function {
				t.Errorf("%q: %q counts as a function word", s, tok.Term)
			}
			return true
		})
	}
	if want := []string{"warum", "ist", "die", "zum"}; !slices.Equal(functions, want) {
		t.Errorf("function words %q, want %q", functions, want)
	}
}
