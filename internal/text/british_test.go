package text

import (
	"slices"
	"strings"
	"testing"
)

// TestSpellings: words that are spelt in two ways come to one term, or have each other's.
func TestSpellings(t *testing.T) {
	pairs := spelledStems + spelledWords + `
		organise organize  organised organized  organising organizing  organiser organizer  organisation organization
		organisational organizational  reorganisation reorganization  realisable realizable  Serialise serialize
		ANALYSE analyze  analysed analyzed  analyser analyzer  catalysing catalyzing  initialise initialize  normalisation normalization
		colour color  colours colors  coloured colored  colourful colorful  discoloured discolored  behaviour behavior
		behavioural behavioral  favourite favorite  neighbourhood neighborhood  neighbouring neighboring  labourer laborer
		armoury armory  honourable honorable  harbour harbor  flavouring flavoring  endeavoured endeavored
		cancelled canceled  labelled labeled  modelling modeling  travellers travelers  enrol enroll  enrolment enrollment
		fulfil fulfill  instalment installment  marvellous marvelous  ageing aging  acknowledgement acknowledgment
		centred centered  fibres fibers  metres meters  licences licenses  relicensed relicensed  licensing licencing
		catalogued cataloged  dialogues dialogs  artefacts artifacts  fuelling fueling  queued queueing  sceptical skeptical
		towards toward  enquiries inquiries  defences defenses  practised practiced`
	eachPair(pairs, func(a, b string) {
		x, y := lookup(Fold(a)).term, lookup(Fold(b)).term
		if x == y {
			return
		}
		if !slices.Contains(Spellings(a), y) || !slices.Contains(Spellings(b), x) {
			t.Errorf("%s (%s) has %v, and %s (%s) %v", a, x, Spellings(a), b, y, Spellings(b))
		}
	})
	eachPair(spelledStems, func(a, b string) {
		if lookup(a).term == lookup(b).term {
			t.Errorf("%s and %s have one term, and need no table", a, b)
		}
	})
	for _, word := range []string{"", "size", "prize", "prise", "seize", "rise", "wise", "maize", "four", "hour", "tour", "your", "contour", "flor", "error",
		"doctor", "programmer", "programming", "laboratory", "collaborate", "colorado", "theodore", "filter", "parameter", "literal", "check", "cheque", "disc",
		"disk", "kubernetes", "organ", "user_licence", "licence.go", "licence2", "größe", "разделе", "数据库", strings.Repeat("ise", 20)} {
		if got := Spellings(word); len(got) > 0 {
			t.Errorf("%s is also spelt %v", word, got)
		}
	}
}
