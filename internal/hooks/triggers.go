package hooks

import (
	"regexp"
	"sync"
)

// trigger is a reason to keep what somebody said. It is looked for in one sentence at a time;
// what stands in unless makes the sentence none. Of a reply, which speaks of its own work in
// the same words, only some count.
type trigger struct {
	class   string
	replies bool // counts in what the agent says, too
	asks    bool // counts in a question, too
	pattern string
	unless  string
}

// triggers is the whole table, English and Chinese; the first that fits names the class.
var triggers = []trigger{
	{class: "remember", replies: true, asks: true,
		pattern: `\b(?:please |can you |could you |and |also |always )?remember (?:that|this|to|my|our|we|i|the|it|:|for)\b|^\W*remember\b|\b(?:keep|bear) in mind\b|\b(?:don't|do not|never) forget\b|\bfor (?:the record|future reference)\b|\bmake a note\b|\bnote to self\b|\bnote that\b`,
		unless:  `\b(?:do|did|does) (?:you|we|i|they|he|she|anyone) remember\b|\b(?:can't|cannot|don't|do not|doesn't|didn't|couldn't|to|i|you|we) remember (?:the|what|why|how|if|whether|where|it)\b|\bremember me\b`},
	{class: "remember", asks: true,
		pattern: `记住|(?:^|[，。！,!：:；;\s]|请|要|帮我)记得|别忘|不要忘|请记下|记一下`, unless: `(?:不|没|未|还|是否|能|会)记得|记得吗|记住了吗|忘记密码`},

	{class: "preference",
		pattern: `\bprefer(?:s|red|ably|ence)?\b|\b(?:i|we|my (?:team|boss|wife|husband|client)) (?:really |also |just |usually |always |generally |do |would )*(?:like|love|hate|dislike|want|need|can't stand|don't like|do not like)\b|\bmy (?:favou?rite|preferred)\b`,
		unless:  `\b(?:want|need|like|love|hate|prefer)(?:ed)? (?:you|to|it to|this to|that to|the (?:test|tests|build|code) to|help|more (?:details|info\w*|context|logs?)|an? (?:fix|hand|minute|second|review))\b|\b(?:looks?|feels?|seems?|sounds?|something|things?) like\b|\blike (?:this|that|so|when|if)\b`},
	{class: "preference", pattern: `(?:我|我们|咱们|团队|老板|客户|用户)[^，。！？,!?]{0,8}(?:喜欢|偏好|偏爱|讨厌|习惯)|(?:喜欢|偏好|讨厌|习惯)(?:用|使用|把|在|于)`,
		unless: `(?:如果|要是|只要)你?喜欢|习惯用语|不习惯吗`},

	{class: "decision", replies: true,
		pattern: `\b(?:we|i|they|the team|it was|has been|have been|was|team)(?:'ve| have| has)?(?: all| finally| just| already| now)? (?:decided|agreed|settled|chose|chosen|opted|picked)\b|\b(?:decision|verdict)(?: is| was|:)|\bdecided (?:to|on|against|that|not)\b|\b(?:switch(?:ed|ing)?|migrat(?:ed?|ing)|mov(?:ed|ing)) (?:\S+ ){0,4}(?:to|from|over to|away from)\b|\b(?:we|we'll|we are|we're|i'll|the project|the team|everyone)(?: will| should| now| going to)* (?:use|using|adopt|go with|going with|stick with|standardi[sz]e on)\b|\bfrom now on\b|\bgoing forward\b|\bwill use\b`,
		unless:  `\b(?:should|could|can|do|shall|would|if) (?:we|i|you)\b|\bhave(?:n't| not) (?:yet )?(?:decided|agreed|chosen)\b|\b(?:moved|switched|moving|switching) (?:on|the (?:cursor|focus)|to the (?:next|branch|directory|folder|file))\b|\bdecided yet\b`},
	{class: "decision", replies: true,
		pattern: `(?:我|我们|咱们|团队|大家|已经?|最终|最后|会议)[^，。！？,!?]{0,6}(?:决定|选择|选定|定下)|决定(?:了|用|采用|使用|改|把|将|不再|由)|改用|采用|换成了?|从现在起|今后(?:都|一律)|以后(?:都|一律)`,
		unless:  `决定论|决定性|还没决定|未决定|没有决定|(?:要不要|是否|该不该)|由你决定|选择题`},

	{class: "contact", pattern: `(?:^|[^\w.])\+?\d{10,15}(?:\b|$)`, unless: `\b(?:id|at|line|time|timestamp|seq|offset|bytes|ns|port|pid|commit|build)\b.{0,12}\d{10,}`},
	{class: "contact", pattern: `[\w.-]+@[\w-]+(?:\.[\w-]+)+`, unless: `\bgit@|://\S*@|npm|@v?\d|noreply|no-reply`},

	{class: "personal",
		pattern: `\bmy (?:\w+ ){1,3}(?:is|are)\b|\bmy \w+'s (?:name|birthday|email)\b|\bcall me [A-Z]?\w+|\bi(?:'m| am) (?:an?|the|from|based in|responsible for|in charge of|allergic|vegan|vegetarian|called|new to|working (?:on|at|for|as)|colou?r-?blind|left-handed|on the)\b|\bi(?:'m| am) (?-i:[A-Z][a-z]+)\b|\b(?:i|we) (?:live|work) (?:in|at|for|as|on|with|from)\b`,
		unless:  `\bmy (?:\w+ ){0,2}(?:build|builds|tests?|code|branch|pr|question|problem|issue|guess|point|understanding|query|output|terminal|concern|goal|idea|plan|bad|changes?|commit|screen|error|program|script|app|server|file|function|loop|pipeline) (?:is|are)\b|\bmy (?:\w+ ){1,3}(?:is|are) (?:not|still|now|also|so|too|broken|failing|slow|stuck|flaky|wrong|empty|missing|down|gone|red|green|crashing|hanging)\b|\bi(?:'m| am) (?:a bit|a little|the one|on the (?:fence|same page|way))\b|\bi(?:'m| am) an? (?:bit|little|idiot)\b`},
	{class: "personal",
		pattern: `我叫\S|我(?:们)?的[^，。！？,!?]{1,12}是|我是(?:一[名个位]|[^，。！？,!?]{0,8}(?:工程师|开发|程序员|经理|学生|老师|医生|设计师|负责人|人(?:$|[，。])))|我(?:住在|来自|负责|在[^，。！？,!?]{1,8}(?:工作|上班))`,
		unless:  `我是(?:说|想|不是|否|要|在)|我的(?:意思|问题|理解|想法|目的|疑问|猜测|代码|测试|构建)[^，。]{0,6}是|我的[^，。]{1,12}是(?:不是|否|什么|怎么)`},

	{class: "emphasis",
		pattern: `(?:^|[.,;:!(]\s*|\b(?:please|and|but|so|we|i|you|they|should|must|to) )(?:always|never)\b|\b(?:is|are|it's|very|most|really|extremely|super|also) (?:important|crucial|critical|essential)\b|^\W*(?:important|importantly|crucial|critical|attention|warning)\b|\bkey (?:point|rule|thing|decision|requirement|constraint|takeaway|fact|lesson)\b`,
		unless:  `\b(?:not|isn't|aren't|less|un)(?: that| so| very| really)?[ -]?important\b|\bnever ?mind\b`},
	{class: "emphasis", pattern: `总是|从不|从来不|绝不|务必|一定要|重要|关键|注意`,
		unless: `不重要|不太重要|没那么重要|关键字|关键词|重要吗|注意到|没注意|为什么总是|怎么总是|关键帧`},
}

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
	{"preference", `\b(?:prefer|like|love|hate|dislike|want|favou?rite)\w*\b|喜欢|偏好|偏爱|讨厌|习惯`},
	{"decision", `\b(?:decid|decision|chose|choos|agreed|switch(?:ed)? to|will use|adopt|going with|settled)\w*|决定|选择|选定|改用|采用|换成`},
	{"entity", `[\w.-]+@[\w-]+\.\w+|\+?\d{10,}|\bmy name is\b|\bcalled\b|我叫`},
	{"fact", `\b(?:is|are|was|were|has|have|lives?|works?|happens?)\b|是|有|在|为`},
}

// noise are prompts that say nothing by themselves.
var noise = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^[\s\W]*(?:ok(?:ay)?|yes|yep|yeah|sure|no|nope|go|go on|go ahead|continue|proceed|next|done|thanks?(?: you)?|thx|great|good|nice|cool|perfect|retry|try again|again|stop|wait|y|n|lgtm|好的?|好吧|可以|继续|是的?|对|不|不是|谢谢|嗯|行|停)[\s\W]*$|^\s*[/!#][\w-]+\s*$`)
})

// dull are commands of which nothing is kept, whether they failed or not: they look.
var dull = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:\w+=\S*\s+)*(?:sudo\s+)?(?:ls|ll|cd|pwd|cat|head|tail|less|more|echo|printf|grep|egrep|rg|ag|fd|find|which|type|whereis|file|stat|wc|sort|uniq|cut|awk|sed|diff|cmp|tree|du|df|ps|top|env|printenv|date|whoami|hostname|history|man|clear|true|false|test|\[|sleep|jq|yq|ping|git\s+(?:status|diff|log|show|branch|blame|grep|ls-files|rev-parse|remote|fetch|stash\s+list)|memctl|mneme)\b`)
})

func compileAll(patterns []string) []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		out[i] = regexp.MustCompile(`(?i)` + p)
	}
	return out
}
