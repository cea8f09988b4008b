package query

import (
	"slices"
	"strings"
	"testing"

	"mneme/memory"
)

// TestQuestionWordsOfChineseCountedAsUnknown: 什么时候部署 held four pairs of characters that no memory
// had, and what says when deployments happen lay below the floor.
func TestQuestionWordsOfChineseCountedAsUnknown(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	for _, text := range []string{"部署在每周二上午十点进行。", "支付服务由王磊维护。", "打印机在三楼走廊尽头。", "周会改到每周四下午三点，在二号会议室。", "新的评审流程，大家觉得怎么样再说。",
		"赵敏对花生过敏，点餐时要注意。", "デプロイは毎週火曜日に行います。", "배포는 매주 화요일에 합니다."} {
		w.One("team", "ann", text)
	}
	for query, want := range map[string]string{
		"什么时候部署": "部署在", "部署是什么时候？": "部署在", "每周几部署": "部署在", "谁维护支付服务？": "王磊", "打印机在哪里": "打印机", "周会是几点？": "周会", "赵敏对什么过敏呢？": "花生",
		"いつデプロイしますか": "デプロイ", "デプロイはいつですか？": "デプロイ", "배포는 언제 합니까?": "배포는",
		"今天天气怎么样": "", "法国的总统是谁？": "", "怎么做红烧肉？": "", "你叫什么名字？": "", "猫为什么喜欢睡觉？": "", "咖啡因有什么作用？": "",
	} {
		got := texts(w.search("team", "", memory.SearchRequest{Query: query}).Results)
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || !strings.Contains(got[0], want)) {
			t.Errorf("%q finds %q", query, got)
		}
	}
}

// TestQuestionWordsAreFoundInQuotesAndAlone: what a question is not about can be asked for.
func TestQuestionWordsAreFoundInQuotesAndAlone(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.One("team", "ann", "他问什么时候部署。")
	w.One("team", "ann", "部署在周二。")
	for query, want := range map[string][]string{
		"什么时候": {"他问什么时候部署。"}, "什么": {"他问什么时候部署。"}, "「什么时候」": {"他问什么时候部署。"}, `"什么时候" 部署`: {"他问什么时候部署。"}, "什么*": {"他问什么时候部署。"}, "部署 -什么": {"部署在周二。"},
	} {
		if got := texts(w.search("team", "", memory.SearchRequest{Query: query}).Results); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	got := texts(w.search("team", "", memory.SearchRequest{Query: "什么* 部署"}).Results)
	if len(got) == 0 || got[0] != "他问什么时候部署。" {
		t.Errorf("a beginning beside a word: %q", got)
	}
}
