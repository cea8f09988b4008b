package text

import (
	"slices"
	"strings"
	"sync"
)

// British and American spellings are told by tables and, where the endings do so for all words, by
// rules. A rule may make a word that nobody writes of one that has no other spelling, exercize
// of exercise: no text has that, so looking for it finds nothing.

// Spellings gives the terms of an English word as it is spelt on the other side of the
// Atlantic: those of licence for license, and of license for licence. None if it is spelt so on
// both, or comes to the same term.
//
// The index has words as they are written; a query looks for both.
func Spellings(word string) (terms []string) {
	folded := Fold(word)
	if len(folded) < minSpelt || !isEnglish(folded) {
		return nil
	}
	term := lookup(folded).term
	add := func(other string) {
		if other != term && !slices.Contains(terms, other) {
			terms = append(terms, other)
		}
	}
	t := spellingTable()
	for _, other := range t.words[folded] {
		add(other)
	}
	for _, other := range t.stems[term] {
		add(other)
	}
	for _, rule := range [...]func(string) string{spelledIse, spelledOur} {
		if other := rule(folded); other != "" {
			add(lookup(other).term)
		}
	}
	return terms
}

// minSpelt is the shortest word, in bytes, that has two spellings.
const minSpelt = 4

// spelledIse exchanges s and z in the endings of organise and analyse; "" if the word has none
// of those. What stands before has three letters, so that prize is not prise.
func spelledIse(word string) string {
	for _, ending := range iseEndings {
		if base, ok := strings.CutSuffix(word, ending); ok && len(base) > 4 {
			switch base[len(base)-2:] {
			case "is", "ys":
				return base[:len(base)-1] + "z" + ending
			case "iz", "yz":
				return base[:len(base)-1] + "s" + ending
			}
		}
	}
	return ""
}

// iseEndings are what follows organis- or organiz-.
var iseEndings = [...]string{"e", "es", "ed", "er", "ers", "ing", "able", "ation", "ations", "ational"}

// spelledOur exchanges -our and -or within a word; "" if it has none.
func spelledOur(word string) string {
	for _, root := range ourRoots {
		at := strings.Index(word, root)
		if at < 0 {
			continue
		}
		end := at + len(root)
		if rest, ok := strings.CutPrefix(word[end:], "our"); ok && slices.Contains(ourEndings, rest) {
			return word[:end] + "or" + rest
		}
		if rest, ok := strings.CutPrefix(word[end:], "or"); ok && slices.Contains(ourEndings, rest) {
			return word[:end] + "our" + rest
		}
	}
	return ""
}

// ourRoots are what stands before -our, after whatever prefix.
var ourRoots = strings.Fields(`arb ard arm behavi cand clam col demean enam endeav fav ferv flav glam harb hon hum lab neighb od
	parl ranc rig rum sav savi splend succ tum val vap vig`)

// ourEndings are what follows colour or favour.
var ourEndings = append(strings.Fields(`s ed er ers ing ings ful fully less able ably al ally ism ist ists ite ites itism hood hoods ly
	y ies`), "")

// spelledStems are pairs of words whose stems stand for each other in all forms.
const spelledStems = `
	centre center  epicentre epicenter  recentre recenter  datacentre datacenter  metre meter  kilometre kilometer
	centimetre centimeter  millimetre millimeter  micrometre micrometer  nanometre nanometer
	fibre fiber  theatre theater  amphitheatre amphitheater  calibre caliber  lustre luster  sabre saber  sombre somber
	spectre specter  meagre meager  mitre miter  sceptre scepter  ochre ocher  manoeuvre maneuver  manoeuvrable maneuverable
	catalogue catalog  dialogue dialog  analogue analog  monologue monolog  epilogue epilog  homologue homolog
	licence license  defence defense  offence offense  pretence pretense  practice practise
	fuelled fueled  dialled dialed  trialled trialed  duelled dueled  focussed focused  biassed biased  queueing queuing
	jewellery jewelry  counsellor counselor  woollen woolen  skilful skillful  chilli chili  carburettor carburetor
	grey gray  greyscale grayscale  artefact artifact  judgement judgment  aluminium aluminum  sceptic skeptic  scepticism skepticism
	yoghurt yogurt  cosy cozy  cosier cozier  pyjamas pajamas  plough plow  snowplough snowplow  mould mold  moult molt
	smoulder smolder  aeroplane airplane  moustache mustache  doughnut donut  omelette omelet  sulphur sulfur  mollusc mollusk
	enquiry inquiry  enquire inquire  cypher cipher  syphon siphon  gramme gram  kilogramme kilogram  chequebook checkbook
	paycheque paycheck  spelt spelled  spilt spilled  leapt leaped  amongst among
	likeable likable  sizeable sizable  saleable salable  moveable movable  useable usable
	encyclopaedia encyclopedia  archaeology archeology  archaeologist archeologist  anaesthetic anesthetic  anaesthesia anesthesia
	paediatric pediatric  paediatrician pediatrician  orthopaedic orthopedic  gynaecology gynecology  gynaecologist gynecologist
	haemoglobin hemoglobin  haemorrhage hemorrhage  anaemia anemia  leukaemia leukemia  mediaeval medieval
	oestrogen estrogen  oesophagus esophagus  foetus fetus  foetal fetal  diarrhoea diarrhea  caesium cesium`

// spelledWords are pairs of words of which other words of the same stem have one spelling: a
// programmer is one in both, and so is what is literal.
const spelledWords = `
	programme program  programmes programs  litre liter  litres liters  millilitre milliliter  millilitres milliliters`

// spellingTables have the terms of the other spellings, by stem and by word.
type spellingTables struct{ stems, words map[string][]string }

var spellingTable = sync.OnceValue(func() *spellingTables {
	t := &spellingTables{stems: map[string][]string{}, words: map[string][]string{}}
	eachPair(spelledStems, func(a, b string) {
		x, y := lookup(a).term, lookup(b).term
		t.stems[x], t.stems[y] = append(t.stems[x], y), append(t.stems[y], x)
	})
	eachPair(spelledWords, func(a, b string) {
		t.words[a], t.words[b] = append(t.words[a], lookup(b).term), append(t.words[b], lookup(a).term)
	})
	return t
})

func eachPair(list string, visit func(a, b string)) {
	words := strings.Fields(list)
	for i := 0; i+1 < len(words); i += 2 {
		visit(words[i], words[i+1])
	}
}
