package embed

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// vector decodes one embedding from JSON: an array of numbers, or a base64
// string of little-endian float32. Unlike []float32 it refuses null, which
// encoding/json would silently turn into 0 and which is how servers write NaN.
type vector []float32

var errNotVector = errors.New("embedding is neither an array of numbers nor base64")

// UnmarshalJSON implements json.Unmarshaler. The input is valid JSON already.
func (v *vector) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) >= 2 && b[0] == '[':
		return v.fromNumbers(b[1 : len(b)-1])
	case len(b) >= 2 && b[0] == '"':
		return v.fromBase64(b)
	}
	return errNotVector
}

func (v *vector) fromNumbers(b []byte) error {
	*v = nil
	if len(bytes.TrimSpace(b)) == 0 {
		return nil
	}
	out := make([]float32, 0, bytes.Count(b, []byte{','})+1)
	for field := range bytes.SplitSeq(b, []byte{','}) {
		x, err := strconv.ParseFloat(string(bytes.TrimSpace(field)), 32)
		if err != nil {
			return fmt.Errorf("embedding number %d is not a finite number", len(out))
		}
		out = append(out, float32(x))
	}
	*v = out
	return nil
}

func (v *vector) fromBase64(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return errors.New("embedding is not valid base64")
	}
	if len(raw)%4 != 0 {
		return fmt.Errorf("embedding has %d bytes, not a multiple of 4", len(raw))
	}
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	*v = out
	return nil
}

// normalise scales v to length 1 in place. It returns an error if v is not
// finite or has no direction. The products are rounded before they are added, so
// that no processor fuses them and all give the same bits.
func normalise(v []float32) error {
	var sum float64
	for i, x := range v {
		f := float64(x)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("embedding number %d is not a finite number", i)
		}
		sum += float64(f * f)
	}
	norm := math.Sqrt(sum)
	if norm == 0 {
		return errors.New("embedding is the zero vector")
	}
	for i, x := range v {
		v[i] = float32(float64(x) / norm)
	}
	return nil
}
