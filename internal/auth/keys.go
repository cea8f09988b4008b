package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// keyPause is how long an issuer is left alone after it was asked for its keys: whoever likes may
// send tokens that name unknown ones. Beyond that it is asked once, as after a new key.
const keyPause = 30 * time.Second

// keySet are the keys that an issuer publishes. They are asked for when a token cannot be checked
// with those that are known, which stay where none come. It is safe for concurrent use.
type keySet struct {
	at  string
	get func(ctx context.Context, at string, out any) error
	now func() time.Time

	mu           sync.Mutex
	keys         []jose.JSONWebKey
	failed       error         // why the last question gave none
	last, before time.Time     // the last two questions
	asking       chan struct{} // closed when the question under way is answered; nil: none is
}

// errSignature is a token that none of the keys has signed.
var errSignature = errors.New("none of the issuer's keys has signed it")

// verify checks a signature and returns what is signed. It fails with errSignature, or because the
// issuer cannot be asked for a key that is not known.
func (k *keySet) verify(ctx context.Context, jws *jose.JSONWebSignature) ([]byte, error) {
	payload, known := k.try(jws)
	if payload != nil {
		return payload, nil
	}
	if err := k.ask(ctx); err != nil && !known {
		return nil, err
	}
	if payload, _ = k.try(jws); payload != nil {
		return payload, nil
	}
	return nil, errSignature
}

// try checks a signature with the keys that are known. known says that they have the one that the
// token names.
func (k *keySet) try(jws *jose.JSONWebSignature) (payload []byte, known bool) {
	k.mu.Lock()
	keys := k.keys
	k.mu.Unlock()
	header := jws.Signatures[0].Header
	for i := range keys {
		if header.KeyID != "" && keys[i].KeyID != header.KeyID || keys[i].Algorithm != "" && keys[i].Algorithm != header.Algorithm {
			continue
		}
		known = true
		if payload, err := jws.Verify(&keys[i]); err == nil {
			return payload, true
		}
	}
	return nil, known
}

// ask asks for the keys, or waits for who does, unless the issuer is to be left alone. The error
// says why the last question gave none.
func (k *keySet) ask(ctx context.Context) error {
	k.mu.Lock()
	asking, now := k.asking, k.now()
	switch {
	case asking != nil:
		k.mu.Unlock()
		select {
		case <-asking:
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.failed
		case <-ctx.Done():
			return ctx.Err()
		}
	case now.Sub(k.last) < keyPause && now.Sub(k.before) < 2*keyPause:
		defer k.mu.Unlock()
		return k.failed
	}
	k.before, k.last = k.last, now
	k.asking = make(chan struct{})
	k.mu.Unlock()
	keys, err := k.fetch(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed = err; err == nil {
		k.keys = keys
	}
	close(k.asking)
	k.asking = nil
	return err
}

// fetch reads the key document. Keys of kinds that are not known, and those that are not for
// signatures, are passed over.
func (k *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), issuerTimeout) // whoever asks first asks for all
	defer cancel()
	var doc struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.get(ctx, k.at, &doc); err != nil {
		return nil, err
	}
	var keys []jose.JSONWebKey
	for _, raw := range doc.Keys {
		var key jose.JSONWebKey
		if err := json.Unmarshal(raw, &key); err == nil && key.Valid() && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no key for signatures", k.at)
	}
	return keys, nil
}
