//! Chromium's debugging protocol: calls with answers, and events in between.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// A connection.
pub struct Wire {
    socket: WebSocket<TcpStream>,
    next: u64,
    /// What has happened meanwhile.
    pub events: Vec<Value>,
}

impl Wire {
    pub fn connect(address: &str) -> Wire {
        let place = address
            .strip_prefix("ws://")
            .unwrap()
            .split('/')
            .next()
            .unwrap();
        let stream = TcpStream::connect(place).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        let mut tries = tungstenite::client(address, stream);
        // The answer to the handshake may be late.
        let socket = loop {
            match tries {
                Ok((socket, _)) => break socket,
                Err(tungstenite::HandshakeError::Interrupted(half)) => tries = half.handshake(),
                Err(error) => panic!("{error}"),
            }
        };
        Wire {
            socket,
            next: 0,
            events: Vec::new(),
        }
    }

    /// Calls a method and waits for its answer.
    pub fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut call = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            call["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(call.to_string())).unwrap();
        let since = Instant::now();
        loop {
            assert!(
                since.elapsed() < Duration::from_secs(120),
                "no answer to {method}"
            );
            match self.read() {
                Some(answer) if answer["id"] == id => {
                    assert!(answer["error"].is_null(), "{method}: {answer}");
                    return answer["result"].clone();
                }
                Some(event) => self.events.push(event),
                None => {}
            }
        }
    }

    /// Waits for an event, which may have come already.
    pub fn wait(&mut self, wanted: impl Fn(&Value) -> bool, patience: Duration) {
        let since = Instant::now();
        while !self.events.iter().any(&wanted) {
            assert!(
                since.elapsed() < patience,
                "the event never came: {:#?}",
                self.events
            );
            let read = self.read();
            self.events.extend(read);
        }
    }

    fn read(&mut self) -> Option<Value> {
        match self.socket.read() {
            Ok(Message::Text(text)) => Some(serde_json::from_str(text.as_str()).unwrap()),
            Ok(_) => None,
            Err(tungstenite::Error::Io(error))
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                None
            }
            Err(error) => panic!("{error}"),
        }
    }
}
