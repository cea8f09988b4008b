package rest

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"

	"mneme/internal/api"
	"mneme/memory"
)

// answerWith is a handler that calls one method without parameters.
func answerWith[T any](s *server, w http.ResponseWriter, r *http.Request, call func() (T, error)) error {
	if _, err := s.parseQuery(r); err != nil {
		return err
	}
	v, err := call()
	if err != nil {
		return err
	}
	return s.writeJSON(w, http.StatusOK, v)
}

// answerBody answers a call that takes a JSON body.
func answerBody[In, Out any](s *server, w http.ResponseWriter, r *http.Request, decoder api.JSONDecoder[In], call func(In) (Out, error)) error {
	body, err := s.plainBody(r)
	if err != nil {
		return err
	}
	in, err := decoder.Decode(body)
	if err != nil {
		return err
	}
	out, err := call(in)
	if err != nil {
		return err
	}
	return s.writeJSON(w, http.StatusOK, out)
}

// bodied is a route that has call answer the body of a request.
func bodied[In, Out any](s *server, call func(context.Context, In) (Out, error)) func(http.ResponseWriter, *http.Request) error {
	decoder := api.NewJSONDecoder[In]()
	return func(w http.ResponseWriter, r *http.Request) error {
		return answerBody(s, w, r, decoder, func(in In) (Out, error) { return call(r.Context(), in) })
	}
}

func (s *server) status(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	local := q.boolean("local", false)
	if err := q.finish(); err != nil {
		return err
	}
	v, err := s.Admin.Status(r.Context(), local)
	if err != nil {
		return err
	}
	return s.writeJSON(w, http.StatusOK, v)
}

func (s *server) doctor(w http.ResponseWriter, r *http.Request) error {
	return answerWith(s, w, r, func() (memory.DoctorReport, error) { return s.Admin.Doctor(r.Context()) })
}

func (s *server) quarantine(w http.ResponseWriter, r *http.Request) error {
	return answerWith(s, w, r, func() (memory.QuarantineList, error) { return s.Admin.Quarantine(r.Context()) })
}

// putInQuarantine is done by whoever the body or the header names.
func putInQuarantine(s *server) func(http.ResponseWriter, *http.Request) error {
	decoder := api.NewJSONDecoder[memory.PutInQuarantine]()
	return func(w http.ResponseWriter, r *http.Request) error {
		return answerBody(s, w, r, decoder, func(req memory.PutInQuarantine) (memory.InQuarantine, error) {
			req.By = cmp.Or(req.By, r.Header.Get(agentHeader))
			return s.Admin.PutInQuarantine(r.Context(), req)
		})
	}
}

// upgrade answers with what one of the two calls says.
func upgrade(s *server, call func(context.Context) (memory.UpgradeStatus, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		return answerWith(s, w, r, func() (memory.UpgradeStatus, error) { return call(r.Context()) })
	}
}

func (s *server) version(w http.ResponseWriter, r *http.Request) error {
	return answerWith(s, w, r, func() (memory.VersionInfo, error) {
		return memory.VersionInfo{Version: s.Admin.Version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}, nil
	})
}

// defaultRejected is how many refused messages are listed unless asked.
const defaultRejected = 100

func (s *server) rejected(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	limit := q.number("limit", defaultRejected, 1, 10000)
	if err := q.finish(); err != nil {
		return err
	}
	list, err := s.Admin.Rejected(r.Context(), limit)
	if err != nil {
		return err
	}
	return s.writeJSON(w, http.StatusOK, list)
}

func (s *server) rebuild(w http.ResponseWriter, r *http.Request) error {
	return long(s, w, r, func(progress func(done, total uint64)) (memory.RebuildReport, error) {
		return s.Admin.Rebuild(r.Context(), progress)
	})
}

func (s *server) verifyLog(w http.ResponseWriter, r *http.Request) error {
	return long(s, w, r, func(progress func(done, total uint64)) (memory.VerifyReport, error) {
		return s.Admin.VerifyLog(r.Context(), progress)
	})
}

func (s *server) repairLog(w http.ResponseWriter, r *http.Request) error {
	return long(s, w, r, func(progress func(done, total uint64)) (memory.RepairReport, error) {
		return s.Admin.RepairLog(r.Context(), progress)
	})
}

func (s *server) acceptClock(w http.ResponseWriter, r *http.Request) error {
	return answerWith(s, w, r, func() (memory.ClockReport, error) { return s.Admin.AcceptClock(r.Context()) })
}

func (s *server) backupLog(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	after := q.str("after")
	if err := q.finish(); err != nil {
		return err
	}
	return s.backup(w, func(out io.Writer) (memory.BackupReport, error) { return s.Admin.BackupLog(r.Context(), out, after) })
}

func (s *server) backupKeys(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	master := q.boolean("master", false)
	if err := q.finish(); err != nil {
		return err
	}
	return s.backup(w, func(out io.Writer) (memory.BackupReport, error) { return s.Admin.BackupKeys(r.Context(), out, master) })
}

// Trailers of a backup: what it holds is known at its end only.
const (
	trailerPosition = "Mneme-Position"
	trailerFrames   = "Mneme-Frames"
	trailerEvents   = "Mneme-Events"
	trailerHash     = "Mneme-State-Hash"
	trailerPipeline = "Mneme-Pipeline-Version"
)

// backup streams what run writes. An error after the first byte breaks the
// stream off.
func (s *server) backup(w http.ResponseWriter, run func(io.Writer) (memory.BackupReport, error)) error {
	h := w.Header()
	h.Set("Trailer", strings.Join([]string{trailerPosition, trailerFrames, trailerEvents, trailerHash, trailerPipeline}, ", "))
	out := &byteStream{w: w}
	report, err := run(out)
	if err != nil {
		return err
	}
	if !out.began {
		out.begin()
	}
	h.Set(trailerPosition, report.Position)
	h.Set(trailerFrames, strconv.FormatUint(report.Frames, 10))
	h.Set(trailerEvents, strconv.FormatUint(report.Events, 10))
	h.Set(trailerHash, report.StateHash)
	h.Set(trailerPipeline, strconv.FormatUint(uint64(report.PipelineVersion), 10))
	return nil
}

// byteStream sends its header with the first byte.
type byteStream struct {
	w     http.ResponseWriter
	began bool
}

func (b *byteStream) begin() {
	b.began = true
	b.w.Header().Set("Content-Type", mediaBytes)
	b.w.WriteHeader(http.StatusOK)
}

func (b *byteStream) Write(p []byte) (int, error) {
	if !b.began {
		b.begin()
	}
	return b.w.Write(p)
}
