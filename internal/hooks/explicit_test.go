package hooks

import (
	"testing"
)

// TestExplicitWordsWereMissed: what somebody asks to keep, or corrects, is kept.
func TestExplicitWordsWereMissed(t *testing.T) {
	for text, class := range map[string]string{
		"Hey, remember: the staging host is box7":          "remember",
		"OK so remember the staging host is box7":          "remember",
		"The staging host is box7, so please remember: it": "remember",
		"Save this to memory: deploys happen on Tuesdays":  "remember",
		"Please add to your memory that we deploy at noon": "remember",
		"Store in memory that the port is 8443":            "remember",
		"Memorize that the port is 8443":                   "remember",
		"Please memorise: deploys are on Tuesdays":         "remember",
		"Take note: the port is 8443":                      "remember",
		"Next time, run the linter before you commit":      "remember",
		"Run the linter before you commit next time.":      "remember",
		"The port is 8443, keep that in mind":              "remember",
		"The port is 8443. Keep that in mind.":             "remember",
		"Actually the port is 8443, not 443":               "correction",
		"No, actually our deploy day is Thursday":          "correction",
		"The port is 8443, not 443":                        "correction",
		"Don't use moment.js, use date-fns":                "correction",
		"Please use date-fns instead of moment.js":         "correction",
		"That's wrong: the port is 8443":                   "correction",
		"That is not right. The port is 8443.":             "correction",
		"You're wrong, the lease lasts five seconds":       "correction",
		"No, the port is 8443":                             "correction",
		"I'd like short answers":                           "preference",
		"I prefer to keep functions small":                 "preference",
		"I hate it when tests sleep":                       "preference",
		"I'm on the platform team in Oslo":                 "personal",
		"It is important to me that commits are signed":    "emphasis",
	} {
		found := Find(text, false)
		if len(found) != 1 || found[0].Text != text || found[0].Class != class {
			t.Errorf("%q: %+v, want %s", text, found, class)
		}
	}
}

// TestWhatAProjectIsBuiltOfWasMissed: who begins a project says what it is to use, and decides nothing in so many words.
func TestWhatAProjectIsBuiltOfWasMissed(t *testing.T) {
	for text, category := range map[string]string{
		"It's a REST API for an online store. I want to use FastAPI with PostgreSQL, Redis for caching, and run everything in Docker.": "preference",
		"Let's use Postgres for the order service.":         "decision",
		"let’s go with Postgres":                            "decision",
		"Let's use Postgres, not MySQL":                     "decision",
		"Let's also use Node.js for the API":                "decision",
		"Let's use Vitest to test the frontend":             "decision",
		"Let's use SQLite for this project":                 "decision",
		"OK, let's just stick with SQLite in tests":         "decision",
		"We want to use OpenTelemetry for traces":           "preference",
		"From now on deploy on Thursdays":                   "decision",
		"以后都用 pnpm":                                         "decision",
		"We also want to standardise on Go 1.26 everywhere": "preference",
	} {
		if found := Find(text, false); len(found) != 1 || found[0].Text != text || found[0].Category != category {
			t.Errorf("%q: %+v, want %s", text, found, category)
		}
	}
	for _, text := range []string{
		"let's use a map here", "let's use the existing helper", "Let's go with option 2", "let's go with that", "let's stick with what we have", "let's use `errors.Join`", "let's use fmt.Errorf() for it",
		"I want to use the new endpoint in this file", "Should we use Redis? If we do, let's use it well", "let's use your approach", "I want to use this function", "do you want to use Redis?", "let's adopt it",
		"let's use git bisect to find it", "Let's use grep first", "Let's use TodoWrite for this", "I want to use Read on main.go", "let's use sleep for now", "let's use Postgres for now",
		"I don't think we want to use Redis", "Nobody thinks we want to use Kafka", "He asked whether we want to use Redis", "Unless we want to use Kafka", "Let's use Grep", "I want to use Edit on it", "How would it be if I want to use Redis",
		"let's go with 2", "let's go with B then", "Let's go with yes", "let's go with everything you said", "I want to use up the rest of the budget", "I want to use all of them", "Maybe we want to use Kafka",
		"The error says: I want to use Redis but it is not there", "I want to use Chrome to see it", "let's use ls -la",
	} {
		if found := Find(text, false); len(found) != 0 {
			t.Errorf("%q is kept as %s", text, found[0].Class)
		}
	}
	if found := Find("I want to use Redis for that.", true); len(found) != 0 {
		t.Errorf("what an agent wants is kept: %+v", found)
	}
}

// TestRulesOfAProjectWereMissed: what is used everywhere, what was gone over to and left, and what somebody works on.
func TestRulesOfAProjectWereMissed(t *testing.T) {
	for text, class := range map[string]string{
		"We went with Redis Streams instead of Kafka": "decision", "We've standardised on Terraform 1.9": "decision", "The team has adopted OpenAPI 3.1": "decision", "We have already gone with gRPC": "decision", "We dropped support for Python 3.9": "decision",
		"We're migrating off Heroku by summer": "decision", "Use British English in all texts": "correction", "And please use bun for everything": "correction", "Use slog everywhere": "correction", "Use UTC throughout": "correction",
		"We don't use ORMs in this repo, plain SQL only": "correction", "For errors I'd rather have wrapped ones than types": "preference", "We would rather ship late than ship broken": "preference",
		"I'm on a Mac with zsh": "personal", "I'm using Windows 11 with WSL2": "personal",
		"接口返回的时间一律用 UTC": "decision", "日志统一使用 slog": "decision", "千万不要直接改生成的文件": "emphasis", "我们项目里不用 Lombok": "correction", "这个项目不再使用 ORM": "correction", "仓库里只用 pnpm": "correction",
	} {
		if found := Find(text, false); len(found) != 1 || found[0].Text != text || found[0].Class != class {
			t.Errorf("%q: %+v, want %s", text, found, class)
		}
	}
	for _, text := range []string{
		"I don't know yet whether we'll go with Postgres", "Ask whether we decided on a queue", "the window moved off screen", "moved tomorrow's meeting", "Let's switch to the other terminal", "switch to the left pane please", "Let's move to the second window", "switch to the new worktree",
		"We went home early", "use the new helper in all of them in this file", "use it everywhere", "Use errgroup in this function instead of a channel", "I'm using the debugger now", "I'm on machine 7", "I'd rather see it first",
		"我们不用担心这个", "先统一一下格式再提交", "不对，撤销刚才的修改", "不对，重新来一次", "不对，改回原来的样子", "不对，先回滚一下", "不对，请恢复旧的文件", "不对，回退到上一版", "错了，重来一遍吧",
	} {
		if found := Find(text, false); len(found) != 0 {
			t.Errorf("%q is kept as %s", text, found[0].Class)
		}
	}
}

// TestCausesWereMissed: what a mistake came from is what the next one who meets it asks for. Of what an agent says only what it found.
func TestCausesWereMissed(t *testing.T) {
	for text, reply := range map[string]bool{
		"The flaky test was caused by clock skew": true, "The root cause was a missing index.": true, "Turns out the leak came from the body": false, "That fixed it. The issue was the pool size.": false, "超时的原因是连接没有释放": false,
	} {
		if found := Find(text, false); len(found) != 1 || found[0].Class != "cause" {
			t.Errorf("%q: %+v", text, found)
		}
		if found := Find(text, true); (len(found) == 1) != reply {
			t.Errorf("in a reply %q: %+v", text, found)
		}
	}
}

// TestRulesForOccasionsWereMissed: what somebody says that holds each time, here, or for good.
func TestRulesForOccasionsWereMissed(t *testing.T) {
	for text, class := range map[string]string{
		"don't ever run migrations against prod without asking me first": "emphasis", "Whenever you add an endpoint, update openapi.yaml too": "emphasis", "every time you touch the schema bump the version in db/VERSION": "emphasis",
		"FYI we share one Redis between staging and QA": "emphasis", "每次改完代码都要跑一遍单元测试": "emphasis", "每次发布之前必须更新变更日志": "emphasis",
		"ok the reason it was flaky is that two tests share the same tmp dir": "cause", "Found it: the cache key didn't include the locale so users got the wrong language": "cause",
		"The customer id is a UUID, not an int, in all our services": "correction", "you should use pnpm in this repo, npm breaks the lockfile": "correction", "You got that wrong: ports are even": "correction",
		"这个项目只能用Java 8，线上服务器不支持更高版本": "correction", "after discussing with Maria we're dropping support for node 16": "decision", "我们数据库已经从MySQL迁到PostgreSQL了": "decision", "经过讨论，我们还是用Vue3，不用React": "decision",
		"let's standardise on zod for validation": "decision", "我们团队约定分支名用feature/开头": "decision", "接口超时统一设为5秒": "decision", "our status codes start at 4000, not 1000": "correction", "线上用的是Nginx，不是Apache": "correction", "the flaky e2e was because chrome was not pinned": "cause",
	} {
		if found := Find(text, false); len(found) != 1 || found[0].Text != text || found[0].Class != class {
			t.Errorf("%q: %+v, want %s", text, found, class)
		}
	}
	for _, text := range []string{
		"which one do you prefer", "add a note that this is deprecated", "every time I run it it hangs, can you check why", "each time the page loads it flashes white", "whenever you're ready, go on with the next one", "Whenever you get a chance, look at the failing test", "fyi it still fails", "what's the reason the build was slow",
		"I found it: thanks", "the loop is slow, not the query, try again", "use a for loop in this function", "every time you fix one thing another breaks", "add the user preference table", "respect prefers-reduced-motion in the carousel", "save the theme preference in localStorage",
		"每次运行都要等很久", "每次打开页面都要刷新一下才行，怎么回事", "用完了，不用管它", "先用这个方法，不用担心性能", "把数据从MySQL导到PostgreSQL", "Always remember that!",
		"现在能用了，不用改了", "用户登录后，不用重新输入密码", "用这个就好，不用改其他的", "用完之后，不用关掉", "先用旧接口，不用迁移", "先用着，不用优化", "是的，不是这个文件", "但是我没看懂，不是我写的", "这不是重点，只是试试看，不是很急", "已从 main 切到 dev 分支",
		"每次编译都要三分钟", "每次启动都要很久", "每次都要重新登录，好烦", "Every time we run it, it takes five minutes", "Whenever you press save, the dialog closes", "That's wrong, got 3 instead of 4",
	} {
		if found := Find(text, false); len(found) != 0 {
			t.Errorf("%q is kept as %s", text, found[0].Class)
		}
	}
}

// TestTalkWasKept: it has the words of a trigger and says nothing that lasts.
func TestTalkWasKept(t *testing.T) {
	for _, text := range []string{
		"I love it, thanks", "I like this!", "I am on the main branch, what now", "I need the test output", "I want the full diff", "we like the new design, ship it",
		"Let's switch to the next file", "switching to the main branch now", "my name is in the header, move it to the footer", "It is important to me that this works",
		"keep the index in memory, it is small", "store the buffer in memory", "write the results into memory first", "add more memory to the pod", "don't use it yet", "use a map here instead of a slice",
		"use the existing helper instead", "I'd like a new endpoint", "this is wrong: expected 3 got 4", "no, the button should be on the left", "I think the file is read twice, not once",
		"Actually, can you rename it too", "Actually the build is still broken", "No, the test is still failing", "That's wrong, try again", "That's not right.", "See you next time",
		"the results memorize themselves badly", "Hey, remember when we broke production?", "I want to make sure my database schema is properly designed", "Please ensure that all my CSS classes are named well", "Check if my virtual environment is set up", "Tell me why my CSS grid is two rows", "I would prefer to see the diff first", "memorize the results of this function in a map",
	} {
		if found := Find(text, false); len(found) != 0 {
			t.Errorf("%q is kept as %s", text, found[0].Class)
		}
	}
}

// TestRepliesThatTellOfTheirWorkWereKept: an agent reports and promises all day long.
func TestRepliesThatTellOfTheirWorkWereKept(t *testing.T) {
	for _, text := range []string{
		"I've migrated the test suite from Jest to Vitest and all 12 tests pass.", "You're right, I'll use fewer comments.", "I moved the helper to util.go; all tests pass.",
		"Got it, I'll remember that deploys happen on Tuesdays.", "I've saved this to memory: the port is 8443.", "I'll keep that in mind for later.", "Noted. I've added that to your memory.",
		"We'll use SQLAlchemy for database interactions.", "In this case we use Flask-Migrate, which is built on Alembic.", "The template will use Bootstrap for styling.", "By switching to Redis you save memory.", "You can switch to Argon2 any time.", "It might be worth switching to Netlify.", "Compare it before and after switching to Argon2.",
		"Don't use moment.js, use date-fns.", "Actually the port is 8443, not 443.", "Next time, run the linter first.",
	} {
		if found := Find(text, true); len(found) != 0 {
			t.Errorf("%q is kept as %s", text, found[0].Class)
		}
	}
}

// TestAFailureWithoutAMessageWasKept, and so were commands of which Git knows.
func TestAFailureWithoutAMessageWasKept(t *testing.T) {
	w := newWorld(t)
	for _, c := range [][2]string{
		{"go test ./...", "exit status 1"}, {"make all", "Error: Exit code 2"}, {"npm test", "Command failed with exit code 1."}, {"make x", "it failed"}, {"make y", ""},
		{"git commit -m x", "On branch main\nnothing to commit, working tree clean"}, {"git pull", "Already up to date."}, {"make lint", "exit status 2\nmake: *** [Makefile:12: lint] Error 2"},
	} {
		w.hook(ClaudeCode, "PostToolUseFailure", toJSON(map[string]any{"tool_name": "Bash", "tool_input": map[string]string{"command": c[0]}, "error": c[1]}))
	}
	for _, command := range []string{"git push", "git push origin main", "git push -u origin fix"} {
		w.hook(ClaudeCode, "PostToolUse", toJSON(map[string]any{"tool_name": "Bash", "tool_input": map[string]string{"command": command}, "tool_response": map[string]string{"stdout": "ok"}}))
	}
	w.stored()
	w.hook(ClaudeCode, "PostToolUseFailure", `{"tool_input":{"command":"go test ./lease"},"error":"exit status 1: TestLease: lease of node 3 expired"}`)
	w.hook(ClaudeCode, "PostToolUseFailure", `{"tool_input":{"command":"make 发布"},"error":"错误 1"}`)
	w.hook(ClaudeCode, "PostToolUse", `{"tool_input":{"command":"git push origin v1.2.0 --tags"},"tool_response":{}}`)
	w.hook(ClaudeCode, "PostToolUse", `{"tool_input":{"command":"git push --force-with-lease origin main"},"tool_response":{}}`)
	w.stored("`go test ./lease` failed: exit status 1: TestLease: lease of node 3 expired", "`make 发布` failed: 错误 1", "Ran `git push origin v1.2.0 --tags`.", "Ran `git push --force-with-lease origin main`.")
}
