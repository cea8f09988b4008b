package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mneme/internal/api/mcp"
)

// rooted is a server whose client says which folders it works in, and in which ones each call was made.
type rooted struct {
	*piped
	mu sync.Mutex
	in [][]string
}

func newRooted(t *testing.T) *rooted {
	t.Helper()
	r := &rooted{}
	r.piped = newPipedWith(t, mcp.Options{Folders: true, Sessions: true, Connect: func(_ context.Context, _ http.Header, folders []string) (mcp.Caller, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.in = append(r.in, folders)
		return mcp.Caller{}, errors.New("no node")
	}})
	r.send(strings.Replace(hello, `"capabilities":{}`, `"capabilities":{"roots":{"listChanged":true}}`, 1))
	r.receive()
	return r
}

// asked waits until the client is asked for its folders, and returns under which id. That a former question is taken
// back may be told at any time.
func (r *rooted) asked() any {
	r.t.Helper()
	q := r.receive()
	for q.Method == "notifications/cancelled" {
		q = r.receive()
	}
	if q.Method != "roots/list" {
		r.t.Fatalf("%+v, want a question", q)
	}
	return q.ID
}

func (r *rooted) tell(id any, folder string) {
	r.t.Helper()
	r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"roots":[{"uri":"file://%s"}]}}`+"\n", id, folder))
}

// told waits for the answer to a call, and holds it against the folders in which it was to be made.
func (r *rooted) told(id int, folder string) {
	r.t.Helper()
	if a := r.receive(); a.ID != float64(id) || a.Method != "" || a.Error != nil {
		r.t.Fatalf("%+v, want the answer to %d", a, id)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.in[len(r.in)-1]
	if folder == "" && len(in) > 0 || folder != "" && (len(in) != 1 || in[0] != filepath.FromSlash(folder)) {
		r.t.Errorf("the call %d was made in %v, not in %q", id, in, folder)
	}
}

const changedLine = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}` + "\n"

// TestCallsThatWaitHeldUpTheAnswerToAQuestion that they waited for: it was read after 5 s, and they
// were made in no folder.
func TestCallsThatWaitHeldUpTheAnswerToAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newRooted(t)
		for id := range 1300 {
			r.send(callLine(id))
		}
		r.tell(r.asked(), "/shop")
		for range 1300 { // and none is a second question
			if a := r.receive(); a.Method != "" || a.Error != nil {
				t.Fatalf("%+v", a)
			}
		}
		for i, in := range r.in {
			if len(in) != 1 || in[0] != filepath.FromSlash("/shop") {
				t.Fatalf("%d was made in %v", i, in)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("they waited %v", took)
		}
	})
}

// TestAQuestionThatFailedPassedForAnAnswer: all later calls were made in no folder.
func TestAQuestionThatFailedPassedForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooted(t)
		r.send(callLine(1))
		r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"error":{"code":-32603,"message":"not yet"}}`+"\n", r.asked()))
		r.told(1, "")
		r.send(callLine(2))
		r.tell(r.asked(), "/shop")
		r.told(2, "/shop")
		r.send(callLine(3)) // which needs no question
		r.told(3, "/shop")
	})
}

// TestALateAnswerWasNotTaken: a client that asks its user first was never in a folder. No more than
// the first calls wait for it.
func TestALateAnswerWasNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newRooted(t)
		r.send(callLine(1))
		late := r.asked()
		r.told(1, "")
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it waited %v", took)
		}
		r.send(callLine(2))
		r.told(2, "")
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("the second waited %v", took)
		}
		r.tell(late, "/shop")
		synctest.Wait()
		r.send(callLine(3))
		r.told(3, "/shop")
	})
}

// TestFoldersThatChangeMeanwhile are asked for again, also by a call that waits for the answer already.
func TestFoldersThatChangeMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newRooted(t)
		r.send(callLine(1))
		old := r.asked()
		r.send(changedLine)
		r.tell(r.asked(), "/shop") // the first one is cancelled
		answered := func(id int, in ...string) {
			t.Helper()
			for { // the notice that the first is cancelled may come in between
				if a := r.receive(); a.Method == "" {
					break
				}
			}
			if len(r.in) != id || !slices.Equal(r.in[id-1], in) {
				t.Errorf("the calls were made in %v, the last not in %v", r.in, in)
			}
		}
		answered(1, filepath.FromSlash("/shop"))
		r.tell(old, "/old") // for which it is too late
		r.send(callLine(2))
		answered(2, filepath.FromSlash("/shop"))
		r.send(changedLine + callLine(3))
		r.tell(r.asked(), "/next")
		answered(3, filepath.FromSlash("/next"))
		if took := time.Since(began); took != 0 {
			t.Errorf("they waited %v", took)
		}
	})
}

// TestFoldersOfBeforeCountedAfterAChange, where the client did not say the new ones: what is said of one
// project became another one's memory.
func TestFoldersOfBeforeCountedAfterAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooted(t)
		r.send(callLine(1))
		r.tell(r.asked(), "/shop")
		r.told(1, "/shop")
		r.send(changedLine + callLine(2))
		r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"error":{"code":-32603,"message":"not yet"}}`+"\n", r.asked()))
		r.told(2, "")
		r.send(callLine(3))
		late := r.asked()
		r.told(3, "")
		r.tell(late, "/next")
		synctest.Wait()
		r.send(callLine(4))
		r.told(4, "/next")
	})
}

// TestAnAnswerThatAChangeFollowedWasLost: a call that had waited for it was made where the server was started,
// if the client said right behind it that its folders changed. They are asked for again after each change.
func TestAnAnswerThatAChangeFollowedWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooted(t)
		told := 0
		for id := range 300 { // which of them is first, the answer or the change, is not told
			before := told
			r.send(callLine(id))
			for answered := false; !answered; {
				switch a := r.receive(); a.Method {
				case "roots/list":
					told++
					r.tell(a.ID, fmt.Sprint("/shop-", told))
					r.send(changedLine)
				case "":
					answered = true
				}
			}
			if in, want := r.in[id], filepath.FromSlash(fmt.Sprint("/shop-", told)); told == before || len(in) != 1 || in[0] != want {
				t.Fatalf("the call %d was made in %q, and not in %q", id, in, want)
			}
		}
	})
}

// TestAnUnreadNoticeHeldUpTheEnd of the input: that a question is taken back was written to a client that does not read.
func TestAnUnreadNoticeHeldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooted(t)
		r.send(callLine(1))
		r.asked()
		r.send(changedLine + cancelLine(1)) // and the client reads no more
		synctest.Wait()
		began := time.Now()
		if err := r.piped.in.Close(); err != nil {
			t.Fatal(err)
		}
		err := <-r.ended
		r.ended <- err
		if took := time.Since(began); took != 0 {
			t.Errorf("it ended after %v, with %v", took, err)
		}
	})
}

// TestACancelledCallWaitedForFolders: its id was taken for as long.
func TestACancelledCallWaitedForFolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooted(t)
		r.send(callLine(1))
		q := r.asked()
		r.send(cancelLine(1))
		synctest.Wait()
		r.send(callLine(1))
		synctest.Wait()
		r.tell(q, "/shop")
		r.told(1, "/shop")
	})
}
