// A server of static files: over HTTP/1.1 or, with a certificate, over HTTP/2 and HTTP/3 as well.
package main

import (
	"log"
	"net"
	"net/http"
	"os"

	"github.com/quic-go/quic-go/http3"
)

func main() {
	address := net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT"))
	certificate, key := os.Getenv("CERTIFICATE"), os.Getenv("KEY")
	files := http.FileServer(http.Dir(os.Getenv("ROOT")))
	if certificate == "" {
		log.Fatal(http.ListenAndServe(address, files))
	}
	go func() {
		log.Fatal(http3.ListenAndServeQUIC(address, certificate, key, files))
	}()
	log.Fatal(http.ListenAndServeTLS(address, certificate, key, files))
}
