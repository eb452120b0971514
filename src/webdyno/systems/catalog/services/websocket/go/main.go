// A server that sends each message of a WebSocket back, or to all who listen.
package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/gorilla/websocket"
)

var upgrader = websocket.Upgrader{}

func main() {
	http.HandleFunc("GET /plaintext", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, "Hello, World!")
	})
	http.HandleFunc("GET /echo", echo)
	all := hub{listeners: map[chan *websocket.PreparedMessage]bool{}}
	http.HandleFunc("GET /broadcast", all.broadcast)
	address := net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT"))
	log.Fatal(http.ListenAndServe(address, nil))
}

func echo(w http.ResponseWriter, r *http.Request) {
	connection, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer connection.Close()
	for {
		kind, message, err := connection.ReadMessage()
		if err != nil {
			return
		}
		if connection.WriteMessage(kind, message) != nil {
			return
		}
	}
}
