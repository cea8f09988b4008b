package local

import "math"

// gate is the g of an activation x·g(x), as a table over [-gateEnd, gateEnd]:
// x·Φ(x) is GELU (Hendrycks and Gimpel 2016). Between two entries it is linear,
// which errs by at most step²/8·max|g″| < 2e-7; beyond, g is 0 or 1.
type gate [gateSteps + 2]float32

const (
	gateEnd   = 8
	gateSteps = 8192 // a multiple of 2·gateEnd
)

// newGate tabulates the activation of that name in config.json; nil if it is
// not a gate that is known.
func newGate(name string) *gate {
	var g func(x float64) float64
	switch name {
	case "gelu":
		g = func(x float64) float64 { return 0.5 * (1 + math.Erf(x/math.Sqrt2)) }
	case "gelu_new", "gelu_pytorch_tanh", "gelu_fast":
		g = func(x float64) float64 { return 0.5 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) }
	default:
		return nil
	}
	t := new(gate)
	for i := range t {
		t[i] = float32(g(-gateEnd + 2*gateEnd*float64(i)/gateSteps))
	}
	return t
}

// apply replaces each x by x·g(x). What is no number stays none.
func (g *gate) apply(v []float32) {
	for i, x := range v {
		switch {
		case x >= gateEnd:
		case x <= -gateEnd:
			v[i] = 0
		case x == x:
			at := (x + gateEnd) * (gateSteps / (2 * gateEnd))
			n := int(at)
			v[i] = x * (g[n] + (at-float32(n))*(g[n+1]-g[n]))
		}
	}
}

// exp returns e^x for x <= 0 with a relative error below 4e-7, and no less than
// e^-87: 2^n·e^r with |r| <= ln2/2, e^r by its Taylor series to the sixth power.
// It is small enough to be inlined.
func exp(x float32) float32 {
	const (
		log2e = 1.442695040888963
		ln2Hi = 0.693359375 // has few bits, so that n·ln2Hi is exact
		ln2Lo = -2.12194440e-4
	)
	if x < -87 {
		x = -87
	}
	n := int32(x*log2e - 0.5)
	f := float32(n)
	r := x - f*ln2Hi - f*ln2Lo
	p := 1 + r*(1+r*(0.5+r*(1./6+r*(1./24+r*(1./120+r*(1./720))))))
	return p * math.Float32frombits(uint32(n+127)<<23)
}

// softmax replaces scores by their share of e^(score·scale).
func softmax(v []float32, scale float32) {
	top := v[0]
	for _, x := range v {
		if x > top {
			top = x
		}
	}
	sum := float32(0)
	for i, x := range v {
		e := exp((x - top) * scale)
		v[i] = e
		sum += e
	}
	share := 1 / sum
	for i := range v {
		v[i] *= share
	}
}

// layerNorm replaces v by (v+residual), centred, scaled to variance 1, times
// weight plus bias (Ba et al. 2016).
func layerNorm(v, residual, weight, bias []float32, epsilon float64) {
	sum := 0.0
	for i, x := range residual {
		v[i] += x
		sum += float64(v[i])
	}
	mean := sum / float64(len(v))
	squares := 0.0
	for _, x := range v {
		d := float64(x) - mean
		squares += d * d
	}
	scale := 1 / math.Sqrt(squares/float64(len(v))+epsilon)
	for i, x := range v {
		v[i] = float32((float64(x)-mean)*scale)*weight[i] + bias[i]
	}
}
