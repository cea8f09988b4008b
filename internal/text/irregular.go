package text

// irregular returns the base form of an English word whose inflection no suffix
// rule undoes, or the word. Forms that are common words of their own in another
// sense (left, saw, felt, found, lay, ground) are in when the verb is what
// people mean in notes and questions.
func irregular(w string) string {
	if len(w) < 3 || len(w) > 10 {
		return w
	}
	switch w {
	case "ate", "eaten":
		return "eat"
	case "became":
		return "become"
	case "began", "begun":
		return "begin"
	case "bent":
		return "bend"
	case "bit", "bitten":
		return "bite"
	case "blew", "blown":
		return "blow"
	case "broke", "broken":
		return "break"
	case "brought":
		return "bring"
	case "built":
		return "build"
	case "burnt":
		return "burn"
	case "bought":
		return "buy"
	case "caught":
		return "catch"
	case "chose", "chosen":
		return "choose"
	case "came":
		return "come"
	case "dealt":
		return "deal"
	case "dug":
		return "dig"
	case "drew", "drawn":
		return "draw"
	case "dreamt":
		return "dream"
	case "drank", "drunk":
		return "drink"
	case "drove", "driven":
		return "drive"
	case "fell", "fallen":
		return "fall"
	case "fed":
		return "feed"
	case "felt":
		return "feel"
	case "fought":
		return "fight"
	case "found":
		return "find"
	case "flew", "flown":
		return "fly"
	case "forgot", "forgotten":
		return "forget"
	case "froze", "frozen":
		return "freeze"
	case "got", "gotten":
		return "get"
	case "gave", "given":
		return "give"
	case "went", "gone", "goes":
		return "go"
	case "grew", "grown":
		return "grow"
	case "hung":
		return "hang"
	case "heard":
		return "hear"
	case "hid", "hidden":
		return "hide"
	case "held":
		return "hold"
	case "kept":
		return "keep"
	case "knew", "known":
		return "know"
	case "laid":
		return "lay"
	case "led":
		return "lead"
	case "learnt":
		return "learn"
	case "left":
		return "leave"
	case "lent":
		return "lend"
	case "lost":
		return "lose"
	}
	return irregularMore(w)
}

// irregularMore is the second half of irregular: verbs from m, and nouns.
func irregularMore(w string) string {
	switch w {
	case "made":
		return "make"
	case "meant":
		return "mean"
	case "met":
		return "meet"
	case "paid":
		return "pay"
	case "rode", "ridden":
		return "ride"
	case "rang", "rung":
		return "ring"
	case "risen":
		return "rise"
	case "ran":
		return "run"
	case "said":
		return "say"
	case "saw", "seen":
		return "see"
	case "sold":
		return "sell"
	case "sent":
		return "send"
	case "shook", "shaken":
		return "shake"
	case "shot":
		return "shoot"
	case "shown":
		return "show"
	case "sang", "sung":
		return "sing"
	case "sank", "sunk":
		return "sink"
	case "sat":
		return "sit"
	case "slept":
		return "sleep"
	case "spoke", "spoken":
		return "speak"
	case "spent":
		return "spend"
	case "stood":
		return "stand"
	case "stole", "stolen":
		return "steal"
	case "stuck":
		return "stick"
	case "swam", "swum":
		return "swim"
	case "took", "taken":
		return "take"
	case "taught":
		return "teach"
	case "tore", "torn":
		return "tear"
	case "told":
		return "tell"
	case "thought":
		return "think"
	case "threw", "thrown":
		return "throw"
	case "understood":
		return "understand"
	case "woke", "woken":
		return "wake"
	case "wore", "worn":
		return "wear"
	case "won":
		return "win"
	case "wrote", "written":
		return "write"
	case "children":
		return "child"
	case "men":
		return "man"
	case "women":
		return "woman"
	case "people":
		return "person"
	case "feet":
		return "foot"
	case "teeth":
		return "tooth"
	case "mice":
		return "mouse"
	case "wives":
		return "wife"
	case "knives":
		return "knife"
	}
	return w
}
