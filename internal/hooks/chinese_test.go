package hooks

import (
	"strings"
	"testing"
)

// TestShortChineseWasDropped: ten Chinese characters say what twenty Latin ones do.
func TestShortChineseWasDropped(t *testing.T) {
	for text, class := range map[string]string{
		"记住部署在周二": "remember", "记住：部署在周二": "remember", "记住周二": "remember", "别忘了备份": "remember", "请记住: A=1": "remember",
		"把这个记下来：部署在周二": "remember", "存到记忆里：端口是 8443": "remember", "请加到你的记忆里：我们周五不上线": "remember",
		"我喜欢用制表符缩进": "preference", "我更倾向于短函数": "preference", "我叫小明，负责支付": "personal",
		"以后提交信息都用英文": "decision", "不要再用 npm 了，我们用 pnpm": "correction", "别用 moment.js，改用 date-fns": "decision",
		"不对，端口是 8443": "correction", "不是 443，是 8443": "correction", "其实端口是 8443": "correction", "remember: x=1": "remember", "手机13812345678晚上可用": "contact", "邮箱ops@example.com找运维": "contact",
	} {
		found := Find(text, false)
		if len(found) != 1 || found[0].Text != text || found[0].Class != class {
			t.Errorf("%q: %+v, want %s", text, found, class)
		}
	}
}

func TestShortChineseThatSaysNothingIsNotKept(t *testing.T) {
	for _, text := range []string{
		"记住了", "请记住", "你要记住", "记住这个", "别忘了", "记住这一点。", "remember", "Remember this!", "please remember that", "keep that in mind", "我喜欢它", "我很喜欢这个，谢谢",
		"这个很重要", "那非常重要！", "请注意一下", "为什么不要再用 npm", "我们用哪个数据库", "以后再看都可以", "不对", "不对，还是报错", "其实是不是这里错了", "把错误写进日志里", "订单号是13812345678901", "克隆git@github.com:org/repo.git这个仓库", "存到数据库里就行",
		"把文件存到磁盘，不要存内存", "不是吧，怎么又失败了",
	} {
		if found := Find(text, false); len(found) != 0 {
			t.Errorf("%q is kept as %s", text, found[0].Class)
		}
	}
}

// TestALongChineseTextIsLookedAtInPieces: half as many characters are as long.
func TestALongChineseTextIsLookedAtInPieces(t *testing.T) {
	text := strings.Repeat("今天天气很好。", 30) + "记住部署在周二。" + strings.Repeat("昨晚下雨。", 30)
	if found := Find(text, false); len(found) != 1 || found[0].Text != "记住部署在周二。" {
		t.Errorf("%+v", found)
	}
}
