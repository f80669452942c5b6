package objects

import (
	"fmt"
	"log/slog"

	"github.com/aws/smithy-go/logging"

	"weir.dev/weir/pkg/fault"
)

// sdkLog makes records of what the SDK would print: warnings, of what it has put up with. Its other class are whole requests, with
// rows and what signs them; they are in no log.
type sdkLog struct{ log *slog.Logger }

// Logf implements [logging.Logger].
func (l sdkLog) Logf(class logging.Classification, format string, v ...any) {
	if class == logging.Warn {
		l.log.Warn("object store client", slog.String("line", fault.Scrub(fmt.Sprintf(format, v...))))
	}
}
