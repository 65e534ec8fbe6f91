# A static binary in an otherwise empty image. The build stage needs Go and the
# module proxy; the result needs nothing, and runs as an unprivileged user.
#   docker build -t berth .
#   docker run -p 8080:8080 -v berth:/data berth serve --listen 0.0.0.0:8080
# The agent with the sandbox runtime belongs on the host itself, not in a
# container: see docs/guide.md.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/berth . && mkdir -p /out/data

FROM scratch
COPY --from=build /out/berth /berth
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
USER 65532:65532
ENV BERTH_DATA=/data
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["/berth"]
CMD ["serve", "--listen", "0.0.0.0:8080"]
