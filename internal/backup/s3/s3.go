// Package s3 is a place of backups in a bucket of S3-compatible storage.
//
// Invariants:
//   - Credentials print as nothing, and stand in no error.
//   - A file appears whole or not at all: what is shorter than a part is one request, more is
//     an upload in parts that counts once it is completed.
//   - An error says whether the bucket is away, full, closed to the caller, or not there.
//
// Not its job: believing the bucket. Who writes a file reads it back.
package s3

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"mneme/internal/backup"
	"mneme/memory"
)

// Options say which bucket, and how it is reached.
type Options struct {
	Bucket, Prefix string
	Endpoint       string // a URL; default: Amazon's
	Region         string // default: us-east-1
	Credentials    Credentials
	CA             []byte // PEM, beside the system's authorities; nil = those alone
	// Plaintext lets an endpoint be http:// though it is on another machine.
	Plaintext bool

	partSize uint64 // of an upload in parts; tests make it small
	tries    int    // of each request; tests do not wait for more
}

// Credentials are a pair of keys, or where they are found. Its String tells nothing.
type Credentials struct {
	ID, Secret, Session string
	File, Profile       string // of the form that the AWS tools share; used where ID is ""
}

// String says that there are some.
func (c Credentials) String() string { return "credentials" }

// Format prints String for every verb.
func (c Credentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

const (
	awsEndpoint = "https://s3.amazonaws.com"
	// partSize bounds a file to 10,000 of it, which S3 allows: 320 GB. One is held in memory.
	partSize = 32 << 20
	// tries is how often a request is sent, with growing pauses, before the bucket counts as away.
	tries = 4
)

// Place is a place in a bucket. It is safe for concurrent use.
type Place struct {
	transport *http.Transport
	client    *minio.Client
	opt       Options
}

// Open makes a place. It sends nothing yet. Errors: CodeInvalid.
func Open(opt Options) (*Place, error) {
	if opt.Endpoint == "" {
		opt.Endpoint = awsEndpoint
	}
	if opt.Region == "" {
		opt.Region = "us-east-1"
	}
	if opt.partSize == 0 {
		opt.partSize = partSize
	}
	if opt.tries == 0 {
		opt.tries = tries
	}
	opt.Prefix = strings.Trim(opt.Prefix, "/")
	if opt.Prefix != "" && !clean(opt.Prefix) {
		return nil, memory.Errorf(memory.CodeInvalid, "the prefix %q in the bucket %s has a segment that is empty, . or ..", opt.Prefix, opt.Bucket).
			WithHint("name it as it is, with one / between two segments")
	}
	at, err := url.Parse(opt.Endpoint)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil || strings.Trim(at.Path, "/") != "" {
		return nil, memory.Errorf(memory.CodeInvalid, "the endpoint of the bucket %s is no URL of a server", opt.Bucket).WithHint("give it as https://HOST:PORT, and credentials apart")
	}
	if at.Scheme == "http" && !opt.Plaintext && !loopback(at.Hostname()) {
		return nil, memory.Errorf(memory.CodeInvalid, "the endpoint %s of the bucket %s has no TLS", opt.Endpoint, opt.Bucket).
			WithHint("use https://, with the authority of its certificate in AWS_CA_BUNDLE; MNEME_S3_PLAINTEXT=true sends to it all the same")
	}
	transport, err := newTransport(opt.CA)
	if err != nil {
		return nil, err
	}
	creds, err := opt.Credentials.provider()
	if err != nil {
		return nil, err
	}
	client, err := minio.New(at.Host, &minio.Options{Creds: creds, Secure: at.Scheme == "https", Region: opt.Region, Transport: transport, MaxRetries: opt.tries})
	if err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "the bucket %s: %v", opt.Bucket, err)
	}
	return &Place{transport: transport, client: client, opt: opt}, nil
}

// provider reads the credentials. Without any the requests would be those of nobody.
func (c Credentials) provider() (*credentials.Credentials, error) {
	from := credentials.NewStaticV4(c.ID, c.Secret, c.Session)
	if c.ID == "" {
		if c.File == "" {
			return nil, memory.Errorf(memory.CodeUnauthenticated, "there are no credentials for the bucket").WithHint(credentialsHint)
		}
		from = credentials.New(&credentials.FileAWSCredentials{Filename: c.File, Profile: c.Profile})
	}
	got, err := from.GetWithContext(nil)
	if err == nil && (got.AccessKeyID == "" || got.SecretAccessKey == "") {
		err = errors.New("an access key, or its secret, is missing")
	}
	if err != nil && c.ID == "" {
		err = fmt.Errorf("profile %q of %s: %w", c.Profile, c.File, err)
	}
	if err != nil {
		return nil, memory.Errorf(memory.CodeUnauthenticated, "there are no credentials for the bucket: %v", err).WithHint(credentialsHint)
	}
	return from, nil
}

const credentialsHint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a file of credentials in AWS_SHARED_CREDENTIALS_FILE and a profile of it as s3://PROFILE@BUCKET/PREFIX"

func newTransport(ca []byte) (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // documented
	t.DisableCompression = true
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if ca == nil {
		return t, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(ca) {
		return nil, memory.Errorf(memory.CodeInvalid, "AWS_CA_BUNDLE names no certificate in PEM form")
	}
	t.TLSClientConfig.RootCAs = pool
	return t, nil
}

// clean reports whether a key is one that this package makes: joined with others it stays
// where it is. Others are left alone, whoever put them there.
func clean(key string) bool { return fs.ValidPath(key) && key != "." }

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// String implements backup.Place.
func (p *Place) String() string { return "s3://" + path.Join(p.opt.Bucket, p.opt.Prefix) }

func (p *Place) key(name string) string { return path.Join(p.opt.Prefix, name) }

// List implements backup.Place.
func (p *Place) List(ctx context.Context, folder string) (out []backup.Info, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	prefix := p.key(folder) + "/"
	for o := range p.client.ListObjects(ctx, p.opt.Bucket, minio.ListObjectsOptions{Prefix: prefix}) {
		if o.Err != nil {
			return nil, p.failed(o.Err)
		}
		if name, in := strings.CutPrefix(o.Key, prefix); in && clean(name) && !strings.Contains(name, "/") {
			out = append(out, backup.Info{Name: folder + "/" + name, Size: o.Size, Changed: o.LastModified})
		}
	}
	slices.SortFunc(out, func(a, b backup.Info) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Put implements backup.Place.
func (p *Place) Put(ctx context.Context, name string, write func(io.Writer) error) error {
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := p.send(ctx, name, r)
		_ = r.CloseWithError(errSent(err)) // it never fails
		sent <- err
	}()
	written := write(w)
	_ = w.CloseWithError(written) // it never fails
	err := <-sent
	if written != nil && !errors.Is(written, errUpload) {
		return written // the reason, and not what followed from it
	}
	return err
}

// errUpload is what a writer gets once the bucket has refused.
var errUpload = errors.New("the upload has ended")

func errSent(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errUpload, err)
}

// send uploads what r gives up to its end. If r gives an error, nothing is there.
func (p *Place) send(ctx context.Context, name string, r io.Reader) error {
	first, err := io.ReadAll(io.LimitReader(r, int64(p.opt.partSize)))
	if err != nil {
		return err
	}
	var info minio.UploadInfo
	if uint64(len(first)) < p.opt.partSize {
		info, err = p.client.PutObject(ctx, p.opt.Bucket, p.key(name), bytes.NewReader(first), int64(len(first)), minio.PutObjectOptions{DisableMultipart: true})
		if err == nil && info.Size != int64(len(first)) {
			err = fmt.Errorf("%d of %d bytes were taken", info.Size, len(first))
		}
	} else {
		_, err = p.client.PutObject(ctx, p.opt.Bucket, p.key(name), io.MultiReader(bytes.NewReader(first), r), -1, minio.PutObjectOptions{PartSize: p.opt.partSize})
	}
	return p.failed(err)
}

// Open implements backup.Place.
func (p *Place) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	r, _, _, err := minio.Core{Client: p.client}.GetObject(ctx, p.opt.Bucket, p.key(name), minio.GetObjectOptions{})
	if err != nil {
		if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
			return nil, fmt.Errorf("%s in %s: %w", name, p, fs.ErrNotExist)
		}
		return nil, p.failed(err)
	}
	return &body{ReadCloser: r, p: p}, nil
}

// body is a file being read. That it breaks off is no end of the file.
type body struct {
	io.ReadCloser
	p *Place
}

// Read implements io.Reader.
func (b *body) Read(buf []byte) (int, error) {
	n, err := b.ReadCloser.Read(buf)
	if err != nil && err != io.EOF {
		err = b.p.failed(err)
	}
	return n, err
}

// Remove implements backup.Place.
func (p *Place) Remove(ctx context.Context, name string) error {
	err := p.client.RemoveObject(ctx, p.opt.Bucket, p.key(name), minio.RemoveObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil
	}
	return p.failed(err)
}

// Sweep implements backup.Place. Parts that were uploaded lie in the bucket, and cost, until
// somebody gives them up.
func (p *Place) Sweep(ctx context.Context, before time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for u := range p.client.ListIncompleteUploads(ctx, p.opt.Bucket, p.key("")+"/", true) {
		if minio.ToErrorResponse(u.Err).Code == minio.NoSuchUpload {
			return nil // that is how some servers say that there are none
		}
		if u.Err != nil {
			return p.failed(u.Err)
		}
		if !u.Initiated.Before(before) || !clean(u.Key) {
			continue
		}
		if err := (minio.Core{Client: p.client}).AbortMultipartUpload(ctx, p.opt.Bucket, u.Key, u.UploadID); err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchUpload {
			return p.failed(err)
		}
	}
	return nil
}

// failed gives an error of the bucket a code and says what to do.
func (p *Place) failed(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var coded *memory.Error
	if errors.As(err, &coded) {
		return err
	}
	told := minio.ToErrorResponse(err)
	code, hint := memory.CodeUnavailable, fmt.Sprintf("look whether %s can be reached, then run it again; what was there is as it was", p.opt.Endpoint)
	switch {
	case told.Code == minio.NoSuchBucket:
		code, hint = memory.CodeInvalid, fmt.Sprintf("make the bucket %s, or name another one", p.opt.Bucket)
	case slices.Contains([]string{"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AllAccessDisabled"}, told.Code), told.StatusCode == http.StatusForbidden, told.StatusCode == http.StatusUnauthorized:
		code, hint = memory.CodeForbidden, "look at the credentials, and at what they may do in the bucket: list, get, put, delete"
	case told.StatusCode == http.StatusInsufficientStorage, strings.Contains(told.Code, "QuotaExceeded"), strings.Contains(told.Code, "StorageFull"):
		code, hint = memory.CodeNoSpace, "make room in the bucket: memctl backup prune removes backups that are no longer wanted"
	case isCertificate(err):
		hint = "name the authority of its certificate in AWS_CA_BUNDLE"
	}
	// Not wrapped: a connection that breaks off is no end of a file.
	return memory.Errorf(code, "%s: %v", p, err).WithHint("%s", hint)
}

func isCertificate(err error) bool {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &unknown) || errors.As(err, &name) || errors.As(err, &invalid)
}

// close ends the connections that nobody uses.
func (p *Place) close() { p.transport.CloseIdleConnections() }
