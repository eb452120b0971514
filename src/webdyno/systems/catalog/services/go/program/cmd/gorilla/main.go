// The sites on the router gorilla/mux.
package main

import (
	"context"
	"log"
	"net/http"

	"github.com/gorilla/mux"

	"webdyno.example/site/site"
	"webdyno.example/site/web"
)

func main() {
	store, err := site.Open(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	router := mux.NewRouter()
	router.HandleFunc("/plaintext", web.Plaintext).Methods("GET")
	router.HandleFunc("/json", web.JSON).Methods("GET")
	router.HandleFunc("/upload", web.Upload).Methods("POST")
	if store != nil {
		it := web.Site{Store: store}
		router.HandleFunc("/db", it.World).Methods("GET")
		router.HandleFunc("/queries", it.Worlds).Methods("GET")
		router.HandleFunc("/updates", it.Updates).Methods("GET")
		router.HandleFunc("/fortunes", it.Fortunes).Methods("GET")
		router.HandleFunc("/items", it.Items).Methods("GET")
		router.HandleFunc("/items", it.AddItem).Methods("POST")
		router.HandleFunc("/items/{id}", withID(it.Item)).Methods("GET")
		router.HandleFunc("/items/{id}", withID(it.UpdateItem)).Methods("PUT")
		router.HandleFunc("/items/{id}", withID(it.DeleteItem)).Methods("DELETE")
	}
	log.Fatal(web.Serve(router))
}

// withID hands the router's value on to where net/http has its own.
func withID(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.SetPathValue("id", mux.Vars(r)["id"])
		next(w, r)
	}
}
