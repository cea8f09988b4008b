package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
	"golang.org/x/text/unicode/norm"
)

// language is one in Latin letters, other than English, whose words have stems of their
// own. A text is in the language of which it has most function words. English is told by
// its own, and stems by the analyzer.
type language struct {
	name string
	stem func(*snowballstem.Env) bool
	// marks are function words that tell a text of the language; others are function words
	// too, but mean something else in English.
	marks, others string
	elides        bool // l'erreur, dell'errore
}

// languages in the order in which one is taken where a text has as many words of two.
var languages = [...]language{
	{"german", german.Stem,
		`der das dem den ein eine einen einem einer eines und oder aber nicht kein keine keinen ist sind waren wird werden
			wurde wurden haben hatte hatten kann können muss müssen soll sollen darf ich du er sie wir ihr mein dein sein auf
			aus bei nach seit von vom zu zum zur für unter durch gegen ohne um wenn weil dass als auch noch nur schon sehr warum
			wieso wann wer welche welcher welches welchem dieser diese dieses diesem hier dort beim doch dann damit ob vor
			zwischen jetzt immer wieder gibt etwas nichts gestern heute`,
		`die war was man so an in am also hat mit im ab da wie wo bis es des über`, false},
	{"french", french.Stem,
		`le la les un une des du de et ou mais donc ne pas que qui quoi dont où sont était étaient sera être avoir avons avez
			avait je il elle nous vous ils elles mon ta notre votre leur leurs ce cet cette ces dans avec entre vers chez depuis
			quand pourquoi très aussi encore déjà toujours jamais tout toute tous toutes faire fait peut doit lors après avant
			quel quelle`,
		`car son ton pour comment plus sans sur on as mes si tu au comme en se à est par ont aux même`, true},
	{"spanish", spanish.Stem,
		`el la los las un una unos unas de que quien cual cuando cuándo donde dónde como cómo porque por para sobre entre hasta
			desde hacia según esta está están fue fueron ser estar había haber hay se le les su sus mis nuestro nuestra este
			estos estas ese esa eso esto aquel muy más pero también ya cada toda todas nos ella ellos ellas puede debe hacer hace
			al qué ayer hoy`,
		`y no son sin o e mi tu lo me si es en a del con todo todos han ha`, false},
	{"italian", italian.Stem,
		`il la gli le un uno una di dello della dei degli delle da dal dalla nel nella nei nelle sul sulla fra che cui quale
			quando dove perché se anche ancora già più molto sono erano stato stata essere avere hanno mio mia tuo suo nostro
			vostro loro questo questa questi queste quello quella ogni tutto tutti tutte noi voi lui lei può deve alla dopo prima
			senza ieri oggi`,
		`come per non era ma in e o lo i su tra io a al ai si è e del con chi fare ha`, true},
	{"portuguese", portuguese.Stem,
		`um uma uns umas de da das em nas por pelo pela para sem sobre entre desde que quem qual quando onde como porque ou mas
			se não já mais muito também foi foram ser estar está estão tem ter havia seu sua seus suas meu minha nosso nossa este
			esta isso isto aquele ela ele eles elas nós você vocês cada toda todas ao aos pode deve fazer são ontem hoje`,
		`o os as do dos no na nos e era a é à com sim até todo todos`, false},
	{"dutch", dutch.Stem,
		`de het een maar niet geen waren wordt worden werd werden heeft hebben kan kunnen moet moeten zal zullen ik jij je hij
			zij ze wij jullie mijn jouw zijn haar ons onze uit bij naar van voor tegen zonder om tot als deze wie waar wanneer
			waarom er hier daar ook nog alleen zeer meer tussen omdat toch altijd iets niets welke wil`,
		`of en is was had we over door want die dan met hun al nu wat te in aan dit dat hoe op`, false},
	{"swedish", swedish.Stem,
		`och att det en ett den som är inte på med till från av om kan ska skall ville jag hon ni sitt mitt ditt
			deras denna detta dessa där när hur varför vad vem vilken eller sedan före efter utan mellan mycket också bara blev
			blir varit vid`,
		`de i for var men under har dig så sin in din vi han vårt våra`, false},
	{"danish", danish.Stem,
		`og det en et den som er ikke på med til af om kan skal ville jeg hun sit mit dit vores deres denne dette disse der når
			hvor hvordan hvorfor hvad hvem hvilken eller siden efter uden mellem meget mere også kun blev bliver været ved`,
		`de i for var men under har at fra så sin over din vi han`, false},
	{"norwegian", norwegian.Stem,
		`og det en et den som er ikke på med til av om kan skal ville jeg hun sitt mitt ditt våre deres denne dette disse
			der når hvor hvordan hvorfor hva hvem hvilken eller siden etter uten mellom mye mer også blir vært ved`,
		`de i for var men under har å fra så sin over din vi han bare ble vår`, false},
	{"finnish", finnish.Stem,
		`ei että mutta kun niin kuin myös olla oli ovat olen olet olemme minä sinä tämä tuo nämä mikä joka jotka jos tai sekä
			vain vielä jo nyt sitten siitä miksi missä milloin miten kanssa ilman ennen jälkeen kaikki eikä`,
		`on se me he hän ja`, false},
	{"hungarian", hungarian.Stem,
		`az egy nem hogy vagy meg mert csak még lesz ezt azt aki amely kell lehet után előtt között nélkül miért hogyan hol
			mikor minden`,
		`a is de te mi ki ez ha volt ami mint van és ők ő én már`, false},
	{"romanian", romanian.Stem,
		`și de la pe cu pentru că este sunt fost avea unei unui cel cea cei cele ce cine când dar sau dacă după până între
			fără prin mai foarte acest această acesta aceasta lui lor noi voi`,
		`în a o un nu are au am ai din fi care cum unde`, false},
	{"turkish", turkish.Stem,
		`bir bu için ile değil gibi daha çok ancak veya olarak olan oldu olduğu yok kadar sonra hiç siz onlar neden nasıl
			nerede`,
		`o da de mi var her ben ama önce sen biz şu ne ya ve`, false},
}

// functionWords holds, by folded word, a bit for each language that has it as one, and
// above those the bits of the languages that it tells. It is not changed.
var functionWords = func() map[string]uint32 {
	words := map[string]uint32{}
	for i, l := range languages {
		for w := range strings.FieldsSeq(l.marks) {
			words[Fold(w)] |= 1<<i | 1<<(i+markBit)
		}
		for w := range strings.FieldsSeq(l.others) {
			words[Fold(w)] |= 1 << i
		}
	}
	return words
}()

const markBit = 16

// none is no language.
const none = -1

// A text is in a language if at least one of leastShare of its words are function words
// that tell it, more than English has in it: two of them, or in a short text one that has
// more than two letters. In capitals it is a name.
const (
	leastShare = 8
	shortText  = 8
)

// evidence is what the words of a text say of its being in a language.
type evidence struct {
	marks  int // function words that tell it
	others int // further ones
	sure   int // marks of more than two letters
	stops  int // others that are stop words of English, too
}

// language tells the language of a text; none is English, one of another script, or unknown.
// Names and code have no function words: what is joined to others counts for nothing. Of
// languages that share words the one is taken that has more of the further ones.
//
// sure: it has two words that tell it, so that its function words are none that matter.
func (a *Analysis) language() (language int, sure bool) {
	var of [len(languages)]evidence
	english, all := 0, 0
	for i := range a.Words {
		w := &a.Words[i]
		stop := 0
		if w.Kind == KindStop {
			stop = 1
		} else if w.Kind != KindWord {
			continue
		}
		english += stop
		all++
		if len(w.Folded) > maxFunctionWord {
			continue
		}
		bit := functionWords[w.Folded]
		if raw := a.Text[w.Start:w.End]; bit == 0 || !standsAlone(a.Text, w.Start, w.End) || stop == 0 && strings.ToUpper(raw) == raw {
			continue
		}
		for l := range of {
			switch {
			case bit&(1<<(l+markBit)) != 0:
				of[l].marks++
				if len(w.Folded) > 2 {
					of[l].sure++
				}
			case bit&(1<<l) != 0:
				of[l].others++
				of[l].stops += stop
			}
		}
	}
	best := 0
	for l := range of {
		if 2*of[l].marks+of[l].others > 2*of[best].marks+of[best].others {
			best = l
		}
	}
	if e := &of[best]; e.marks <= english-e.stops || e.marks*leastShare < all || e.marks < 2 && (all > shortText || e.sure == 0) {
		return none, false
	}
	return best, of[best].marks > 1
}

// Foreign reports whether a text is in a language, in Latin letters, whose words have stems of
// their own: none in which nothing tells it from English.
func (a *Analysis) Foreign() bool {
	l, _ := a.language()
	return l != none
}

// standsAlone reports whether s[from:to] is a word of a sentence, and no part of a name.
func standsAlone(s string, from, to int) bool {
	if r, _ := utf8.DecodeLastRuneInString(s[:from]); from > 0 && !isSpaceRune(r) && !isMark(r, `"'(`) {
		return false
	}
	if r, n := utf8.DecodeRuneInString(s[to:]); to < len(s) && isMark(r, `"').,:;!?`) {
		to += n
	}
	r, _ := utf8.DecodeRuneInString(s[to:])
	return to == len(s) || isSpaceRune(r)
}

// isMark reports whether a character is one of those, or a mark outside ASCII: « or ¿.
func isMark(r rune, ascii string) bool {
	return r < utf8.RuneSelf && strings.ContainsRune(ascii, r) || r >= utf8.RuneSelf && unicode.IsPunct(r)
}

func isSpaceRune(r rune) bool { return r < utf8.RuneSelf && isSpace(byte(r)) || unicode.IsSpace(r) }

// maxFunctionWord is the longest function word, in bytes.
const maxFunctionWord = 12

// isFunction reports whether a folded word is a function word of a language.
func isFunction(language int, folded string) bool {
	return len(folded) <= maxFunctionWord && functionWords[folded]&(1<<language) != 0
}

// foreign gives the stem of a word in the language of its text where that is not the term
// already; where an umlaut may be spelt with an e, the stem of that, too.
func (c *cutter) foreign(raw string, w *Word) {
	if len(raw) > maxForeign || strings.ContainsFunc(w.Folded, notInWord) {
		return
	}
	l := &languages[c.language]
	lower := strings.ToLower(norm.NFC.String(raw))
	if at := strings.LastIndexFunc(lower, notLetter); at >= 0 && l.elides && at <= maxElided {
		_, n := utf8.DecodeRuneInString(lower[at:])
		lower = lower[at+n:]
	}
	c.stem(l, lower, w)
	if spelt := digraphs.Replace(lower); spelt != lower {
		c.stem(l, spelt, w)
	}
}

func (c *cutter) stem(l *language, lower string, w *Word) {
	env := snowballstem.NewEnv(lower)
	l.stem(env)
	if stem := Fold(env.Current()); stem != w.Term {
		c.add(stem, w.Start, w.End)
	}
}

const (
	maxForeign = 64 // the longest word whose stem is looked for, in bytes
	maxElided  = 5  // the longest article or preposition before an apostrophe: dell'errore
)

func notLetter(r rune) bool { return !unicode.IsLetter(r) }
func notInWord(r rune) bool { return r != '\'' && notLetter(r) }
