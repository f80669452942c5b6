# One recipe for the image of every program. SERVICE is coordinator, cdc-postgres, cdc-mysql, sink, progress or weir.
#
#   docker build --build-arg SERVICE=sink -t weir/sink .                        compiled in the image golang
#   make images && docker build --target prebuilt --build-arg SERVICE=sink .    compiled on this machine, no registry needed
#
# An image is one static program, the certificates of the public authorities and an empty /tmp. It has no shell and no
# user's account; `/service health` is its probe.

ARG GO=1.26.8

FROM scratch AS frame
EXPOSE 8422
ENV SSL_CERT_FILE=/ca-certificates.crt
USER 65532:65532
ENTRYPOINT ["/service"]

FROM frame AS prebuilt
ARG SERVICE
COPY dist/ca-certificates.crt /
COPY --chown=65532:65532 dist/tmp /tmp
COPY dist/${SERVICE} /service

FROM golang:${GO} AS build
WORKDIR /src
COPY pkg pkg
COPY services services
ARG SERVICE
ARG VERSION=dev
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    cd services && \
    GOWORK=off CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X weir.dev/weir/pkg/app.version=${VERSION}" \
        -o /out/service "./${SERVICE}/cmd/${SERVICE}" && \
    cp /etc/ssl/certs/ca-certificates.crt /out/ && mkdir /out/tmp

FROM frame AS source
COPY --from=build /out/ca-certificates.crt /
COPY --from=build --chown=65532:65532 /out/tmp /tmp
COPY --from=build /out/service /service
