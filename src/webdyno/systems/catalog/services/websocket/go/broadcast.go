package main

import (
	"net/http"
	"sync"

	"github.com/gorilla/websocket"
)

// How many messages may wait for a listener that reads slowly, before it is dropped.
const waiting = 256

// Who listens, each with the messages that wait for it.
type hub struct {
	mutex     sync.Mutex
	listeners map[chan *websocket.PreparedMessage]bool
}

func (h *hub) add(messages chan *websocket.PreparedMessage) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.listeners[messages] = true
}

func (h *hub) remove(messages chan *websocket.PreparedMessage) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.drop(messages)
}

func (h *hub) drop(messages chan *websocket.PreparedMessage) {
	if h.listeners[messages] {
		delete(h.listeners, messages)
		close(messages)
	}
}

func (h *hub) send(message *websocket.PreparedMessage) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for messages := range h.listeners {
		select {
		case messages <- message:
		default:
			h.drop(messages)
		}
	}
}

// Sends each message to all who listen, its sender among them.
func (h *hub) broadcast(w http.ResponseWriter, r *http.Request) {
	connection, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it has answered
	}
	messages := make(chan *websocket.PreparedMessage, waiting)
	h.add(messages)
	defer h.remove(messages)
	go write(connection, messages)
	for {
		kind, message, err := connection.ReadMessage()
		if err != nil {
			return
		}
		prepared, err := websocket.NewPreparedMessage(kind, message)
		if err != nil {
			return
		}
		h.send(prepared)
	}
}

func write(connection *websocket.Conn, messages <-chan *websocket.PreparedMessage) {
	defer connection.Close()
	for message := range messages {
		if connection.WritePreparedMessage(message) != nil {
			return
		}
	}
}
