package dates

import (
	"strings"
	"unicode/utf8"
)

// startsHan reports whether an expression may start with a character.
func startsHan(r rune) bool {
	switch r {
	case '今', '去', '来', '接', '前', '大', '明', '后', '本', '上', '这', '下', '昨', '每', '春', '夏', '秋', '冬', '周', '星', '礼', '年', '月', '最', '近',
		'过', '未', '半', '几', '一', '二', '三', '四', '五', '六', '七', '八', '九', '十', '两', '廿', '卅', '〇', '零', '国', '圣', '平', '除',
		'中', '端', '清', '重', '劳', '儿', '妇', '情', '教', '青', '建', '双', '愚', '感', '母', '父', '跨', '腊', '正', '农', '阴', '早', '凌',
		'傍', '晚', '夜', '午', '刚', '自', '从', '直', '截', '到', '第', '元', '寒', '暑', '植', '复', '深':
		return true
	}
	return r >= '０' && r <= '９'
}

// eat moves i over the first of words that stands there. Longer words come first.
func (p *parser) eat(i *int, words ...string) bool {
	rest := p.s[*i:]
	for _, w := range words {
		if strings.HasPrefix(rest, w) {
			*i += len(w)
			return true
		}
	}
	return false
}

func (p *parser) starts(i int, words ...string) bool { return p.eat(&i, words...) }

func (p *parser) blank(i *int) {
	for n := 0; n < 3 && *i < len(p.s) && p.s[*i] == ' '; n++ {
		*i++
	}
}

// han reads the Chinese expression that starts at byte i, with its relation. It
// returns the byte after it.
func (p *parser) han(i int) (match, int) {
	rel, j := On, i
	switch {
	case p.eat(&j, "自从", "自", "从"):
		rel = Since
	case p.eat(&j, "直到", "截至", "截止到", "截止", "到"):
		rel = Until
	}
	m, k := p.hanPoint(j)
	if !m.ok() {
		return m, i
	}
	if second := k; rel != Until && p.hanTo(&second) {
		list := p.starts(k, "和", "与") // two dates, unless 之间 follows
		if b, end := p.hanPoint(second); b.ok() {
			if both := join(m, b); both.ok() && (p.eat(&end, "之间", "期间") || !list) {
				return both, end
			}
		}
	}
	if rel == Since && j == i+len("从") && !p.starts(k, "以来", "起", "开始") && m.grain < GrainDay {
		rel = On
	}
	if m.rel != On {
		return m, k
	}
	m.rel = rel
	p.hanRelation(&m, &k)
	m.settle()
	return m, k
}

// hanTo moves over a word or sign between two dates.
func (p *parser) hanTo(i *int) bool {
	p.blank(i)
	ok := p.eat(i, "到", "至", "和", "与", "-", "~", "—", "–", "～", "－")
	p.eat(i, "—")
	p.blank(i)
	return ok
}

// hanRelation reads what follows a date: 之前, 以后, 左右.
func (p *parser) hanRelation(m *match, i *int) {
	switch {
	case p.starts(*i, "前后"), p.starts(*i, "左右"):
		*i += len("前后")
		m.rel = Around
	case p.eat(i, "为止"):
		m.rel = Until
	case p.eat(i, "以来", "起", "开始"):
		m.rel = Since
	case p.eat(i, "之前", "以前"), m.grain >= GrainDay && !p.starts(*i, "前天", "前往", "前台", "前任", "前端", "前面") && p.eat(i, "前"):
		m.rel = Before
	case p.eat(i, "之后", "以后", "过后"), m.grain >= GrainDay && !p.starts(*i, "后天", "后台", "后来", "后端", "后面") && p.eat(i, "后"):
		m.rel = After
	case p.eat(i, "期间"):
	}
}

// hanPoint reads one date with its time of day.
func (p *parser) hanPoint(i int) (match, int) {
	if i >= len(p.s) {
		return match{}, i
	}
	m, j := p.hanDate(i)
	if !m.ok() {
		return p.hanClockAlone(i)
	}
	if m.grain == GrainDay && m.rel == On {
		return p.hanClockAfter(m, j)
	}
	return m, j
}

// hanDate tries the rules for one date that fit its first character, the longer
// first.
func (p *parser) hanDate(i int) (m match, next int) {
	if d, _ := hanDigit(p.s[i:]); d >= 0 || p.starts(i, "十", "廿", "卅") {
		return p.hanFromNumber(i)
	}
	r, _ := utf8.DecodeRuneInString(p.s[i:])
	switch r {
	case '周', '星', '礼', '每':
		return p.hanWeek(i)
	case '今', '明', '昨', '后':
		if m, next = p.hanDay(i); m.ok() {
			return m, next
		}
		return p.hanYear(i)
	case '去', '来':
		return p.hanYear(i)
	case '月', '当':
		return p.hanMonthFrom(i)
	case '半', '几', '过', '未', '接':
		return p.hanAgo(i)
	case '上', '下', '本', '这':
		if m, next = p.hanWeek(i); m.ok() {
			return m, next
		}
		if m, next = p.hanMonthFrom(i); m.ok() {
			return m, next
		}
		if m, next = p.hanYear(i); m.ok() {
			return m, next
		}
		if m, next = p.hanDecade(i); m.ok() {
			return m, next
		}
		if r == '这' {
			return p.hanAgo(i)
		}
		return p.hanSeasonAlone(i)
	case '前', '大', '最', '近':
		for rule := range 4 {
			switch rule {
			case 0:
				m, next = p.hanYear(i)
			case 1:
				m, next = p.hanDay(i)
			case 2:
				m, next = p.hanAgo(i)
			case 3:
				m, next = p.hanVague(i)
			}
			if m.ok() {
				return m, next
			}
		}
	case '刚':
		return p.hanVague(i)
	case '农', '阴', '正', '腊':
		if m, next = p.hanLunar(i); m.ok() {
			return m, next
		}
	case '春', '夏', '秋', '冬', '暑', '寒', '年', '第':
		if m, next = p.hanSeasonAlone(i); m.ok() {
			return m, next
		}
	}
	return p.hanHolidayAlone(i)
}

// hanFromNumber is hanDate for what starts with a number: the word after it
// decides.
func (p *parser) hanFromNumber(i int) (m match, next int) {
	_, _, j := p.hanNumber(i)
	p.blank(&j)
	r, _ := utf8.DecodeRuneInString(p.s[j:])
	switch r {
	case '年':
		if m, next = p.hanYear(i); m.ok() {
			return m, next
		}
		if m, next = p.hanAgo(i); m.ok() {
			return m, next
		}
		return p.hanDecade(i)
	case '世':
		return p.hanDecade(i)
	case '月':
		return p.hanMonthDay(i)
	case '季':
		return p.hanSeasonAlone(i)
	case '号':
		return p.hanDayOnly(i)
	case '个', '天', '日', '周', '星', '礼', '小', '分', '多', '几':
		return p.hanAgo(i)
	}
	return p.hanHolidayAlone(i)
}

// hanDigit returns the value of one numeral 0..9, or -1, and its length.
func hanDigit(s string) (v, n int) {
	if s == "" {
		return -1, 0
	}
	if isDigit(s[0]) {
		return int(s[0] - '0'), 1
	}
	if s[0] < 0xe3 {
		return -1, 0
	}
	r, n := utf8.DecodeRuneInString(s)
	switch r {
	case '〇', '零', '○':
		return 0, n
	case '一', '元', '壹':
		return 1, n
	case '二', '两', '贰':
		return 2, n
	case '三':
		return 3, n
	case '四':
		return 4, n
	case '五':
		return 5, n
	case '六':
		return 6, n
	case '七':
		return 7, n
	case '八':
		return 8, n
	case '九':
		return 9, n
	}
	if r >= '０' && r <= '９' {
		return int(r - '０'), n
	}
	return -1, 0
}

// hanNumber reads a number below 10000 at byte i: digits of any kind in a row
// (2023, ２０２３, 二〇二三) or with units (两千零二十三, 二十一, 廿三). digits is how many
// stood in a row, 0 with units.
func (p *parser) hanNumber(i int) (v, digits, next int) {
	start := i
	sum, cur := 0, -1
	for n := 0; i < len(p.s) && n < 12; n++ {
		if d, size := hanDigit(p.s[i:]); d >= 0 {
			if cur >= 0 {
				if digits == 0 && sum > 0 && cur > 0 {
					break
				}
				cur = cur*10 + d
			} else {
				cur = d
			}
			if digits++; cur > 99999 {
				return 0, 0, start
			}
			i += size
			continue
		}
		unit := 0
		switch {
		case p.eat(&i, "十"):
			unit = 10
		case p.eat(&i, "百"):
			unit = 100
		case p.eat(&i, "千"):
			unit = 1000
		case p.eat(&i, "廿"):
			unit, cur = 10, 2
		case p.eat(&i, "卅"):
			unit, cur = 10, 3
		}
		if unit == 0 {
			break
		}
		if digits > 1 && sum == 0 && cur > 9 {
			return 0, 0, start
		}
		sum += max(cur, 0) * unit
		if cur < 0 {
			sum += unit
		}
		cur, digits = -1, 0
		if sum > 9999 {
			return 0, 0, start
		}
		if unit >= 100 {
			p.eat(&i, "零", "〇")
		}
		if d, _ := hanDigit(p.s[i:]); d < 0 && !p.starts(i, "十", "百") {
			break
		}
	}
	if i == start || i < len(p.s) && isDigit(p.s[i]) && digits > 0 {
		return 0, 0, start
	}
	if sum > 0 {
		digits = 0
	}
	return sum + max(cur, 0), digits, i
}
