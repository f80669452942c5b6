// Package objects opens a warehouse in an object store that speaks S3.
//
// Role: the files are the library's; this package decides how the store is spoken to. Reads that lose their answer on the way are
// asked again, for what is left of them. Nothing else is: a request that changes something is repeated by the SDK's rules only, and
// no commit is among them.
//
// Failure: what a bounded number of repetitions does not mend is an error of the read. An attempt that meets it ends, and the next
// begins with what is durable.
package objects

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/io/gocloud/s3" // and warehouses s3://
	"github.com/apache/iceberg-go/utils"
)

// Access says how a store is reached. What is empty is as AWS's own settings say.
type Access struct {
	Endpoint, Region     string
	AccessKey, SecretKey string
}

// silence is how long a store may take to begin its answer when it has the whole request, and to go on with it. Nothing else ends a
// request that is lost: the library's files know the context that they were opened with, and none of the call.
const silence = 10 * time.Second

// pause is about how long a read waits before it is tried again for the first time.
const pause = 50 * time.Millisecond

// maxIdle is how many connections to the store are kept for the next requests.
const maxIdle = 64

// Open opens the warehouse at root; nothing is asked of it yet. Requests end with ctx.
func Open(ctx context.Context, root string, a Access, log *slog.Logger) (iceio.WriteFileIO, error) {
	return open(ctx, root, a, rereader{log: log, silence: silence, pause: pause})
}

func open(ctx context.Context, root string, a Access, r rereader) (iceio.WriteFileIO, error) {
	props := iceberg.Properties{}
	for key, value := range map[string]string{
		iceio.S3EndpointURL: a.Endpoint, iceio.S3Region: a.Region, iceio.S3AccessKeyID: a.AccessKey, iceio.S3SecretAccessKey: a.SecretKey,
	} {
		if value != "" {
			props[key] = value
		}
	}
	cfg, err := s3.ParseAWSConfig(ctx, props)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout, transport.MaxIdleConnsPerHost = silence, maxIdle
	cfg.HTTPClient = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	cfg.Logger, cfg.APIOptions = sdkLog{r.log}, append(cfg.APIOptions, r.install)
	files, err := iceio.LoadFS(utils.WithAwsConfig(ctx, cfg), props, root)
	if err != nil {
		return nil, err
	}
	w, ok := files.(iceio.WriteFileIO)
	if !ok {
		return nil, fmt.Errorf("%T cannot write", files)
	}
	return w, nil
}
