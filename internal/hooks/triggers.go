package hooks

import (
	"regexp"
	"sync"
)

// trigger is a reason to keep what somebody said. It is looked for in one sentence at a time;
// what stands in unless makes the sentence none. Of a reply, which speaks of its own work in
// the same words, only some count, and none with what stands in own.
type trigger struct {
	class   string
	replies bool // counts in what the agent says, too
	asks    bool // counts in a question, too
	whole   bool // is looked for in the text as one, and not by sentences
	rest    bool // points at something: a text that has nothing beside it, or in the pattern's group, says nothing
	pattern string
	unless  string
	own     string
}

// What stands in many patterns. head is where a clause begins. That nothing but signs stands
// before a sentence is seen to when it is cut: \W would take Chinese for signs, too.
const (
	head = `(?:^|[.,;:!(，。；：！（—]\s*)`
	tail = `[\s.,!。，！…]*$`
	talk = `(?:(?:hey|hi|ok|okay|so|oh|well|also|and|but|please|just|always) )*`
	asks = `\b(?:should|could|can|do|shall|would|if|whether) (?:we|i|you)\b`
	bad  = `still|again|try|fix|undo|revert|redo|look|check|broken|fail\w*|flaky|slow|stuck|crash\w*|errors?|why`

	guess = `\b(?:what|why|how|if|whether|maybe|perhaps|probably|not sure|might|could|think)\b`
	using = `(?:use|adopt|go with|stick with)`
	step  = `(?:this|that)(?: (?:one|file|function|method|class|test|case|line|loop|step|task|branch|pr|commit)\b|[.,;!?]|$)` // of a task, and no project
)

// triggers is the whole table, English and Chinese; the first that fits names the class.
var triggers = []trigger{
	{class: "remember", replies: true, asks: true, rest: true,
		pattern: `\b(?:please |can you |could you |and |also |always )?remember (?:that|this|to|my|our|we|i|the|it|for)\b|` + head + talk + `remember\b|\bremember\s*:|` +
			`\b(?:keep|bear) (?:(?:that|this|it|these|the following) )?in mind\b|\b(?:don't|do not|never) forget\b|\bfor (?:the record|future reference)\b|` +
			`\b(?:make a note|take (?:a )?note(?:\s*:| that\b| of (?:this|that|the following)\b))|\bnote to self\b|` + head + talk + `note that\b|` + head + talk + `memori[sz]e\b(?: (?:that|this|it|the following))?|` +
			`\b(?:please )?(?:save|store|add|put|commit|write|keep|record) (?:(?:this|that|it|these|the following) )?(?:to|in|into) (?:the |our |team |shared |long-term )*memory(?:\s*:|,? that\b)|` +
			`\b(?:please )?(?:save|add|commit) (?:this|that|it|these) to (?:the |our |team |shared |long-term )*memory\b|` +
			`\b(?:save|store|add|put|commit|write|keep|record|note)\b(?: (?:this|that|it|these|the following)\b)?([^!?]*?)\b(?:to|in|into) your (?:long-term )?memor(?:y|ies)\b`,
		unless: `\b(?:do|did|does) (?:you|we|i|they|he|she|anyone) remember\b|\b(?:can't|cannot|don't|do not|doesn't|didn't|couldn't|to|i|you|we) remember (?:the|what|why|how|if|whether|where|it)\b|` +
			`\bremember me\b|\bremember (?:when|who|how|why|what|where|which)\b[^!]*\?|\bmemori[sz]e (?:the |its |all )?(?:results?|calls?|functions?|values?|components?)\b`,
		own: `\bi(?:'ll|'ve|'d| will| have| can| could)\b[^!?]*?\b(?:remember|keep|bear|noted|memori[sz]ed?|saved?|stored?|add(?:ed)?|commit(?:ted)?|record(?:ed)?|written)\b`},
	{class: "remember", asks: true, rest: true,
		pattern: `(?:请|麻烦|帮我|帮忙|你|您|要|一定|务必|先|也)*(?:记住|别忘|不要忘|(?:请|把(?:这|它|下面)[^，。！？,!?]{0,4})记下来?|记下来|记一下)(?:了|啦|吧|哦|啊|记)*(?:这个|这一点|这点|这件事|它)?|(?:^|[，。！,!：:；;\s]|请|要|帮我)记得|` +
			`(?:存|写|加|记|放|保存|添加|记录)(?:到|进|入|在)(?:你的?|您的|团队的?|我们的|长期的?)*(?:记忆|备忘)(?:里|中|录|库)*`,
		unless: `(?:不|没|未|还|是否|能|会)记得|记得吗|记住了吗|忘记密码|(?:没|没有|未|忘了)记(?:下|住)|记住(?:密码|登录|用户)`},
	{class: "remember", rest: true,
		pattern: `(?:^|[.;!]\s*)next time\b|,? next time[.!]*$`,
		unless:  `\b(?:see you|talk|until|maybe|the) next time\b|\bnext time (?:it|the \w+) (?:runs?|fires?|starts?|loads?|is|gets)\b`},

	{class: "preference",
		pattern: `\bprefer(?:s|red|ably|ence)?\b|\b(?:i|we|my (?:team|boss|wife|husband|client))(?:'d)? (?:really |also |just |usually |always |generally |do |would )*(?:like|love|hate|dislike|want|need|can't stand|don't like|do not like)\b|\bmy favou?rite\b|\b(?:i|we)(?:'d| would) rather .+? than\b`,
		unless: `\b(?:want|need)(?:ed)? to\b|(?:\bwould|'d) (?:\w+ )?(?:like|love|hate|prefer) (?:to|an?|the|another|some|more)\b|\b(?:like|love|hate|prefer) to (?:see|know|think|ask|have|hear|say|bother|break|look|read|wait)\b|` +
			`\b(?:want|need|like|love|hate|prefer)(?:ed)? (?:you|it to|this to|that to|the (?:test|tests|build|code) to|help|more (?:details|info\w*|context|logs?)|an? (?:fix|hand|minute|second|review))\b|` +
			`\b(?:like|love|hate|want|need|prefer) (?:it|this|that|them|these|those)(?:[.,;!)]|$| (?:thanks|so|a lot|very|too|now|back|done|fixed|working|more|better|already)\b)|` +
			`\b(?:want|need) (?:your|some|another|(?:the|an?|all) (?:\S+ )?(?:output|diff|logs?|results?|list|files?|code|errors?|stack ?trace|details|link|command|summary|source|functions?|methods?|tests?|class|scripts?|buttons?|page|table|component|endpoint|plan))\b|` +
			`\bi (?:\w+ )?need (?:it|this|that|these|those|the(?: \S+){1,3}[.!]*$)|\b(?:like|love|hate|dislike) (?:the (?:new|current|latest|updated|first|second|last|other)|your|how|where)\b|` +
			`\b(?:looks?|feels?|seems?|sounds?|something|things?) like\b|\blike (?:this|that|so|when|if)\b|` +
			`\bprefers-|\b(?:do|does|did) (?:you|they|he|she) prefer\b|\b(?:user|theme|colou?r|language|notification|cookie|display|layout|sort)(?:'?s)? (?:\w+ )?preference(?:$|[^\w ]| [^i])|\bpreference (?:page|panel|screen|dialog|menu|file|table|key|in)\b`},
	{class: "preference", pattern: `(?:我|咱们|团队|老板|客户|用户)[^，。！？,!?]{0,8}(?:喜欢|偏好|偏爱|讨厌|习惯|倾向|宁愿|更愿意)|(?:喜欢|偏好|讨厌|习惯)(?:用|使用|把|在|于)`,
		unless: `(?:如果|要是|只要)你?喜欢|习惯用语|不习惯吗|喜欢(?:它|这个|这样|这种|那个|你的?)?(?:了|的|啊|设计|版本|方案)?(?:[，。！,!\s]|$)`},

	{class: "decision", replies: true,
		pattern: `\b(?:we|i|they|team|has been|have been|was)(?:'ve| have| has)?(?: all| finally| just| already| now)? (?:decided|agreed|settled|chose|chosen|opted|picked)\b|\b(?:decision|verdict)(?: is| was|:)|\bdecided (?:to|on|against|that|not)\b|\bfrom now on\b|\bgoing forward\b`,
		unless:  asks + `|\bhave(?:n't| not) (?:yet )?(?:decided|agreed|chosen)\b|\bdecided yet\b`},
	{class: "decision", // which an agent says of each step
		pattern: `\b(?:we|we'll|we are|we're|i'll|the project|the team|everyone)(?: will| should| now| going to)* (?:use|using|adopt|go with|going with|stick with|standardi[sz]e on)\b|\bwill use\b`,
		unless:  asks},
	{class: "decision", replies: true,
		pattern: `\b(?:we|the project|the team)(?:'ve|'re| have| has| are| is)?(?: all| finally| just| already| now)* (?:went with|gone with|adopted|standardi[sz]ed on|dropp(?:ed|ing) support for)\b`,
		unless:  asks},
	{class: "decision",
		pattern: `\b(?:(?:i|we) (?:also )?want to|let's(?: just| also)?) (?:` + using + ` (?-i:[A-Z])|standardi[sz]e on )\w`,
		unless: `\b(?:` + using + `|standardi[sz]e on) (?:\S+\(|(?:option|plan|approach|version|yes|no|read|write|edit|bash|grep|glob|git|todowrite|webfetch|websearch)\b)|` +
			`\bhere\b|\b(?:in|for) ` + step + `|\b(?:for now|first)[.,;!]*$|\bto (?:find|check|see|debug|edit|look|compute)\b|\b\w+\.(?:go|py|ts|rs|java|md)\b|\b(?-i:[a-z])\w*\.js\b|` +
			asks + `|(?:\b(?:maybe|why|how|when|whether|unless|if|says?|said|told|asked|never|nobody|no one)|n't)\b.*?\b(?:want to|let's)\b`},
	{class: "decision", replies: true,
		pattern: `\b(?:switch(?:ed|ing)?|migrat(?:ed?|ing)|mov(?:ed|ing)) (?:\S+ ){0,4}(?:to|from|off (?-i:[A-Z])\w*)\b`,
		unless: asks + `|\b(?:moved|moving) on\b|\bthe (?:cursor|focus)\b|` +
			`\b(?:to|from) (?:the |a |an |this |that |my |your )?(?:\S+ )?(?:next|previous|branch|directory|folder|file|tab|step|line|page|section|footer|header|top|bottom|left|right|end|terminal|window|pane|editor|session|worktree)\b`,
		own: `\bi(?:'ve|'ll|'m| have| will| am)?(?: (?:just|now|also|already|successfully))* (?:switch|migrat|mov)|\b(?:by|after|before|you|can|could|might|worth|to) (?:switch|migrat|mov)|\ball (?:the )?(?:\d+ )?tests\b`},
	{class: "decision", replies: true,
		pattern: `(?:我|咱们|团队|大家|已经?|最终|最后|会议)[^，。！？,!?]{0,6}(?:决定|选择|选定|定下|约定|规定)|决定(?:了|用|使用|改|把|将|不再|由)|改用|采用|换成了?|从现在起|一律|统一(?:用|使用|设)|(?:今后|以后|往后)[^，。！？,!?再]{0,12}(?:都|只|不要|别|不再|请)`,
		unless:  `决定论|决定性|还没决定|未决定|没有决定|(?:要不要|是否|该不该)|由你决定|选择题|还没选择`},
	{class: "decision", // which an agent says of its own work
		pattern: `[已都]经?从[^，。！？,!?]{1,20}[迁换切转升][^，。！？,!?]{0,2}[到成为]|(?:^|[^先])用[^了着户完这那，。！？,!?][^了后，。！？,!?]{0,14}[，,]\s*而?不[要再]?用[^，。！？,!?了着管担改再重关]`,
		unless:  `要不要|是否|该不该|到[^，。！？,!?]{0,12}(?:分支|目录|页|窗口)`},

	{class: "decision",
		pattern: `\bour (?:\w+ ){0,2}(?:convention|policy|rule|standard)s? (?:is|are)\b`,
		unless:  `\b(?:` + bad + `|wrong|too|missing|unclear)\b`},

	{class: "cause", replies: true,
		pattern: `\b(?:root cause|culprit) was\b|\b(?:was|were) caused by\b`,
		unless:  guess},
	{class: "cause",
		pattern: `\b(?:root cause|culprit) is\b|\bthe (?:\w+ )?(?:issue|problem|bug) was\b|\b(?:turns out|turned out to be)\b|\b(?:i|we) (?:fixed|solved) (?:it|this|that|the \w+) (?:by|with)\b|` +
			`\b(?:was|were) because\b|\bthe reason (?:\S+ ){2,8}?(?:is|was) (?:that|because)\b|\bfound (?:it|the (?:bug|cause|problem)): (?:the|an?|we) `,
		unless: guess + `|\b(?:still|again|try|check|gone)\b|\bthe reason i\b`},
	{class: "cause",
		pattern: `原因(?:是|在于)|问题(?:是因为|出在|在于)|(?:是因为|由于|是由)[^。！？!?]{1,30}(?:导致|引起|造成)`,
		unless:  `什么|哪|是不是|可能|也许|会不会`},

	{class: "correction",
		pattern: `(?:` + head + `|\b(?:please|and|but|so|no) )(?:don't|do not|stop|avoid) (?:use|using)\b|\bwe (?:don't|do not|no longer) use\b|` +
			`(?:` + head + `|\b(?:please|and) )use (?:\S+ ){1,4}?(?:instead of|rather than|in place of|for everything|(?:for|in) all|everywhere|throughout)\b|` +
			`(?:` + head + `|\b(?:please|and|should|must|have to|only) )use (?:\S+ ){1,4}?(?:in|for) (?:this|our) (?:repo\w*|project|codebase)\b`,
		unless: `\b(?:use|using) (?:it|this|that|them|these|those)\b|\bhere\b|\bin ` + step},
	{class: "correction",
		pattern: `(?:` + head + `|\b(?:no|but|and|well) )actually\b,? (?:the|our|my|we) .*?\b(?:is|are|was|were|runs?|uses?|lives?|needs?|has|have|must|should)\b|(?:` + head + `)actually\b.*, not \S|` +
			`\b(?:(?:the|our|my|we) .*?\b(?:is|are|was|were|uses?|runs?|lives?)|our) (?:\S+ ){0,4}?\S+, not (?:\S+ ?){1,4}(?:$|,)`,
		unless: `\b(?:` + bad + `|wrong|fine|good|great|better|ok|okay|i think)\b`},
	{class: "correction", whole: true, rest: true,
		pattern: `^(?:no[,.:!]? )?(?:(?:that|this|it)(?:'s| is| was) (?:wrong|incorrect|a mistake|not (?:right|correct|true))\b|(?:you're|you are|you got (?:it|that)) wrong\b)|^(?:wrong|incorrect|no|nope)[,.:!] (?:the|our|my|we) .*?\b(?:is|are|was|were|runs?|uses?|lives?|has|have)\b`,
		unless:  `\b(?:` + bad + `|expected|(?:i|we|it|[,:]) got|prints?|output|returns?|shows?|throws?)\b`},
	{class: "correction", whole: true, rest: true,
		pattern: `^(?:不对|错了|不是这样的?|你?(?:搞|弄|说|记)错了)[，,：:。！!\s]|不是[^，。！？,!?]{1,20}[，,]?\s*(?:而)?是|(?:^|[^但可只就于总要])是[^的啊，。！？,!?][^，。！？,!?]{0,19}[，,]\s*不是[^很]|其实[^，。！？,!?]{1,20}(?:是|在|叫|用)|(?:^|[，。！,!；;：:\s]|请)(?:不要|别)再?(?:用|使用)|(?:我们|咱们|团队|项目|仓库)(?:里|中|都|现在|目前|已经)*(?:(?:只能?|必须)(?:使用|用)|不再?使用|不再?用 ?[A-Za-z])`,
		unless:  `还是|报错|失败|不行|再试|重试|撤销|回滚|回退|改回|恢复|重新|重来|是不是|怎么|吗|什么|哪|用(?:它|这个|那个)|不是吧`},

	{class: "contact", pattern: `(?:^|[^\w.])\+?\d{10,15}\b`, unless: `\b(?:id|at|line|time|timestamp|seq|offset|bytes|ns|port|pid|commit|build)\b.{0,12}\d{10,}|(?:编号|订单|单号|时间戳)[^，。！？]{0,6}\d{10,}`},
	{class: "contact", pattern: `[\w.-]+@[\w-]+(?:\.[\w-]+)+`, unless: `\bgit@|://\S*@|npm|@v?\d|noreply|no-reply`},

	{class: "personal",
		pattern: `\bmy (?:\w+ ){1,3}(?:is|are)\b|\bmy \w+'s (?:name|birthday|email)\b|\bcall me [A-Z]?\w+|\bi(?:'m| am) (?:an?|the|from|based in|responsible for|in charge of|allergic|vegan|vegetarian|called|new to|working (?:on|at|for|as)|(?:on|using) (?:an? )?(?:mac(?:os|book\w*)?|windows|linux|wsl\d?|ubuntu|debian|fedora|arch|nixos)\b|colou?r-?blind|left-handed|(?:on|in) (?:the )?(?:\S+ )?team)\b|\bi(?:'m| am) (?-i:[A-Z][a-z]+)\b|\b(?:i|we) (?:live|work) (?:in|at|for|as|on|with|from)\b`,
		unless: `\b(?:ensure|sure|check|verify|if|whether|why) (?:that )?(?:all )?(?:of )?(?:my|i'm)\b|` +
			`\bmy (?:\w+ ){0,2}(?:build|builds|tests?|code|branch|pr|question|problem|issue|guess|point|understanding|query|output|terminal|concern|goal|idea|plan|bad|changes?|commit|screen|error|program|script|app|server|file|function|loop|pipeline) (?:is|are)\b|\bmy (?:\w+ ){1,3}(?:is|are) (?:not|still|now|also|so|too|broken|failing|slow|stuck|flaky|wrong|empty|missing|down|gone|red|green|crashing|hanging)\b|` +
			`\bmy (?:\w+ ){1,3}(?:is|are) (?:in|on|at|under|inside|behind|below|above|next to) (?:the |a |an |my |this |that )?(?:\w+ )?(?:header|footer|files?|code|list|table|page|repo|folder|config|\w*bar|menu|top|bottom|left|right|end|corner|screen|readme|title|class|function|line)\b|` +
			`\bi(?:'m| am) (?:the one|on the (?:fence|same page|way))\b|\bi(?:'m| am) an? (?:bit|little|idiot)\b`},
	{class: "personal",
		pattern: `我叫\S|我(?:们)?的[^，。！？,!?]{1,12}是|我是(?:一[名个位]|[^，。！？,!?]{0,8}(?:工程师|开发|程序员|经理|学生|老师|医生|设计师|负责人|人(?:$|[，。])))|我(?:住在|来自|负责|在[^，。！？,!?]{1,8}(?:工作|上班))`,
		unless:  `我是(?:说|想|不是|否|要|在)|我的(?:意思|问题|理解|想法|目的|疑问|猜测|代码|测试|构建)[^，。]{0,6}是|我的[^，。]{1,12}是(?:不是|否|什么|怎么)`},

	{class: "emphasis",
		pattern: `(?:` + head + `|\b(?:please|and|but|so|we|i|you|they|should|must|to) )(?:always|never|(?:don't|do not) ever)\b|\b(?:is|are|it's|very|most|really|extremely|super|also) (?:important|crucial|critical|essential)\b|^(?:important|importantly|crucial|critical|attention|warning)\b|\bkey (?:point|rule|thing|decision|requirement|constraint|takeaway|fact|lesson)\b`,
		unless:  `\b(?:not|isn't|aren't|less|un)(?: that| so| very| really)?[ -]?important\b|\bnever ?mind\b|\b(?:important|crucial|critical|essential)(?: (?:to|for) (?:me|us|you))? that (?:this|it|that|they|everything|all)\b`},
	{class: "emphasis", // what holds whenever something is done, and what somebody is to know
		pattern: head + talk + `(?:whenever|(?:every|each) time) (?:you|we)\b|^(?:just )?(?:fyi|for your information)\b`,
		unless:  `\b(?:` + bad + `)\b|\bwhenever you(?:'re| are| can| have| get| want| like)\b|, (?:it|i|there|the \w+ \w+s)\b`},
	{class: "emphasis", pattern: `每次[^都，。！？,!?][^，。！？,!?]{0,15}(?:要|必须|应该|得先)`,
		unless: `报错|失败|为什么|怎么|要不要|吗|烦|等|久|秒|分钟|小时`},
	{class: "emphasis", pattern: `总是|从不|从来不|绝不|千万|务必|一定要|重要|关键|注意`,
		unless: `不重要|不太重要|没那么重要|关键字|关键词|重要吗|注意到|没注意|为什么总是|怎么总是|关键帧|^(?:这|那|它)(?:个|一点|点|件事)?(?:真的|非常|很|都|也|最|特别|十分)*(?:重要|关键)` + tail + `|^请?注意(?:一下|下)?` + tail},
}

// asking are the words that only ask to remember, or whether somebody does: most memories that somebody
// asked for begin with them, and are about something else. What features are called stays.
var asking = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?P<stays>\bremember[ -]me\b|记住(?:密码|登录|用户|我)|[登标日书笔传]记得)|` +
		`\bremember(?:s|ed|ing)?\b|\b(?:don['’]t|do not|never) forget\b|\b(?:keep|bear)(?: (?:that|this|it|these|the following))? in mind\b|` +
		`\bfor (?:the record|future reference)\b|\b(?:make|take) (?:a )?note(?: that| of)?\b|\bnote (?:to self|that)\b|\bmemori[sz]e (?:that|this|it)\b|` +
		`\b(?:save|store|add|put|commit|write|keep|record|note)(?: (?:this|that|it|these))? (?:to|in|into) your (?:long-term )?memor(?:y|ies)\b|` +
		`(?:请|麻烦|帮我|帮忙|务必|一定要?|还|是否)*(?:记住|记得|别忘|不要忘|记下来|记一下)(?:了|啦|吧|哦|啊|吗|记)*|(?:存|写|加|记|放|保存|添加|记录)(?:到|进|入|在)(?:你的?|您的)(?:长期)?记忆(?:里|中)?`)
})

// idlers ask for nothing beside such words.
var idlers = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:i|you|we|he|she|they|it|me|us|him|her|them|my|your|our|this|that|these|those|there|here|the|an?|what|whatever|which|who|when|where|why|how|if|whether|do|does|did|done|don['’]t|doesn['’]t|` +
		`didn['’]t|can['’]t|can|cannot|could|couldn['’]t|will|would|won['’]t|should|must|is|are|am|was|were|be|been|have|has|had|not|no|to|of|for|on|in|at|about|with|and|or|but|so|now|just|also|always|still|please|ok|okay|hey|hi|any|` +
		`anything|everything|something|nothing|all|thing|things|last|time|before|earlier|talk(?:ed|ing)?|sa(?:y|id)|tell|told|discuss(?:ed)?|mention(?:ed)?|sp(?:eak|oke))\b|` +
		`你们?|您|我们?|咱们|他们?|她们?|它们?|这个?|那个?|[一点件事的吗呢吧了啊呀么都过请能会要也就再]|什么|怎么|哪些?|可以|所有|一切|以前|之前|上次|刚才|说|讲|聊|谈|告诉`)
})

// never is what makes a text worth nothing, whatever else stands in it: text that tries to
// instruct who reads it later.
var never = []string{
	`\b(?:ignore|disregard|forget|override)\b[^.!?\n]{0,30}\b(?:previous|prior|above|earlier|all|any|your|system|the)\b[^.!?\n]{0,20}\b(?:instructions?|prompts?|rules?|messages?|guidelines?)\b`,
	`\b(?:system|developer) (?:prompt|message)\b`,
	`\byou are now (?:an?|in|the)\b`,
	`\bnew instructions?:`,
	`\b(?:act|behave|pretend|respond) as (?:if|though|an?|the) (?:admin|root|dan|developer mode|unrestricted|jailbroken)`,
	`\bdo not (?:tell|inform|mention|reveal)[^.!?\n]{0,20}\b(?:user|human)\b`,
	`忽略[^。！？\n]{0,12}(?:指令|提示|规则|要求|说明)`, `无视[^。！？\n]{0,12}(?:指令|提示|规则)`, `系统提示词`, `你现在是(?:一个|一名)`,
}

// categories say what a kept text is, by the first that fits, as the words in it go.
var categories = []struct{ category, pattern string }{
	{"preference", `\b(?:prefer|like|love|hate|dislike|want|favou?rite)\w*\b|喜欢|偏好|偏爱|讨厌|习惯|倾向|宁愿`},
	{"decision", `\b(?:decid|decision|chose|choos|agreed|switch(?:ed)? to|will use|let['’]s(?: just| also)? (?:use|go with|stick with)|from now on,? \S|adopt|going with|settled)\w*|决定|选择|选定|改用|采用|换成|从现在起|` +
		`(?:今后|以后|往后)[^，。！？,!?再]{0,12}(?:都|一律|统一|只|不要|别|不再|请)`},
	{"entity", `[\w.-]+@[\w-]+\.\w+|\+?\d{10,}|\bmy name is\b|\bcalled\b|我叫`},
	{"fact", `\b(?:is|are|was|were|has|have|lives?|works?|happens?)\b|是|有|在|为`},
}

// noise are prompts that say nothing by themselves, without the signs around them.
var noise = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:(?:ok(?:ay)?|yes|yep|yeah|sure|no|nope|go|go on|go ahead|continue|proceed|next|done|thanks?(?: you)?|thx|great|good|nice|cool|perfect|retry|try again|again|stop|wait|y|n|lgtm|好的?|好吧|可以|继续|是的?|对|不|不是|谢谢|嗯|行|停))?$`)
})

// slash are commands to the host, such as /clear.
var slash = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[/!#][\w-]+$`) })

// dull are commands of which nothing is kept, whether they failed or not: they look.
var dull = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:\w+=\S*\s+)*(?:sudo\s+)?(?:ls|ll|cd|pwd|cat|head|tail|less|more|echo|printf|grep|egrep|rg|ag|fd|find|which|type|whereis|file|stat|wc|sort|uniq|cut|awk|sed|diff|cmp|tree|du|df|ps|top|env|printenv|date|whoami|hostname|history|man|clear|true|false|test|\[|sleep|jq|yq|ping|git\s+(?:status|diff|log|show|branch|blame|grep|ls-files|rev-parse|remote|fetch|stash\s+list)|memctl|mneme)\b`)
})

func compileAll(patterns []string) []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		out[i] = compile(p)
	}
	return out
}

// compile has a pattern take capitals and small letters alike; of none it makes nil.
func compile(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	return regexp.MustCompile(`(?i)` + pattern)
}
