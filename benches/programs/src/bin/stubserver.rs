//! A server that answers at once and does nothing: for measuring a client alone. `stubserver SOCKET` listens until it is
//! killed; a thread a connection.

use pgdyno_engine::stub::{Request, StubSession};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

fn serve(mut stream: UnixStream, n: u32) {
    let mut session = StubSession::new(n);
    let mut buf = [0; 4096];
    while let Ok(n @ 1..) = stream.read(&mut buf) {
        for reply in session.feed(&buf[..n]) {
            if reply.request == Request::Terminate || stream.write_all(&reply.bytes).is_err() {
                return;
            }
        }
    }
}

fn main() {
    let path = std::env::args().nth(1).expect("usage: stubserver SOCKET");
    let listener = UnixListener::bind(path).expect("a socket that can be made");
    for (n, stream) in listener.incoming().enumerate() {
        let Ok(stream) = stream else { continue };
        let thread = std::thread::Builder::new().stack_size(64 * 1024);
        thread.spawn(move || serve(stream, n as u32 + 1)).expect("a thread");
    }
}
