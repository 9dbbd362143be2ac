// Command go-webtransport sends messages of WebTransport back, by webtransport-go on quic-go.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strconv"

	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"
)

func main() {
	port := flag.Int("port", 8000, "port on 127.0.0.1")
	workers := flag.Int("workers", 1, "threads that may run Go code at the same time")
	cert := flag.String("cert", "", "certificate")
	key := flag.String("key", "", "the certificate's key")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)

	mux := http.NewServeMux()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(*port))
	// It knows what HTTP/3 is called only where it is told.
	named := http3.ConfigureTLSConfig(&tls.Config{})
	server := &webtransport.Server{H3: &http3.Server{Addr: address, Handler: mux, TLSConfig: named}}
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		session, err := server.Upgrade(w, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		go datagrams(session)
		streams(session)
	})
	log.Fatal(server.ListenAndServeTLS(*cert, *key))
}

// streams ends with the session.
func streams(session *webtransport.Session) {
	for {
		stream, err := session.AcceptStream(session.Context())
		if err != nil {
			return
		}
		go func() {
			defer stream.Close()
			message, err := io.ReadAll(stream)
			if err == nil {
				_, _ = stream.Write(message)
			}
		}()
	}
}

func datagrams(session *webtransport.Session) {
	for {
		datagram, err := session.ReceiveDatagram(context.Background())
		if err != nil || session.SendDatagram(datagram) != nil {
			return
		}
	}
}
