//! All tests of the engine from outside in one program: it is linked once.

mod commands;
mod everywhere;
mod fuzz;
mod grpc;
mod hostile;
mod http2;
mod http3;
mod layers;
mod layers_nginx;
mod load;
mod null_server;
mod parser;
mod pieces;
mod reader;
mod sessions;
mod shares;
mod streams;
mod structure;
mod support;
mod tls;
mod websocket;
