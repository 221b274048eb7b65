//! Questions of several threads to one program. A question is sent while the program still answers the ones before, so
//! that it does not wait for us; answers come in the order of questions, and each goes to who asked.

use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::Failure;
use crate::programs::serving::{Frame, Serving};

/// A program with questions under way.
pub struct Line {
    /// How many questions were sent, and where they go.
    sent: Mutex<(u64, Sender<Vec<u8>>)>,
    turn: Mutex<Turn>,
    passed: Condvar,
    /// Only who has the turn waits for an answer: a timeout begins with the answer before.
    serving: Mutex<Serving>,
}

struct Turn {
    /// The question whose answer comes next.
    next: u64,
    /// Why nothing can be asked any more.
    over: Option<String>,
}

/// A question that was sent. Its answer must be taken, or those behind it wait for ever.
#[must_use]
pub struct Asked(u64);

impl Line {
    /// Of a program that waits for questions.
    pub fn new(serving: Serving) -> Line {
        Line {
            sent: Mutex::new((0, serving.requests())),
            turn: Mutex::new(Turn {
                next: 0,
                over: None,
            }),
            passed: Condvar::new(),
            serving: Mutex::new(serving),
        }
    }

    /// Sends a question.
    pub fn ask(&self, request: &Frame) -> Asked {
        let bytes = request.bytes();
        let mut sent = lock(&self.sent);
        // A program that has ended is found by its missing answer.
        let _ = sent.1.send(bytes);
        sent.0 += 1;
        Asked(sent.0 - 1)
    }

    /// Its answer, read by `read`; or what is wrong. After that nothing is asked any more: what the program would answer
    /// belongs to another question.
    pub fn answer<R>(
        &self,
        asked: Asked,
        read: impl FnOnce(&Frame) -> Result<R, String>,
    ) -> Result<R, Failure> {
        let turn = lock(&self.turn);
        let turn = self
            .passed
            .wait_while(turn, |turn| turn.next < asked.0 && turn.over.is_none());
        // Whoever reports first reports what happened.
        if let Some(why) = &turn.unwrap_or_else(PoisonError::into_inner).over {
            return Err(Failure::new(why.clone()));
        }
        let mut serving = lock(&self.serving);
        let answer = serving.answer();
        let answer = answer.and_then(|frame| read(&frame).map_err(|why| serving.failure(&why)));
        let mut turn = lock(&self.turn);
        turn.next += 1;
        turn.over = answer.as_ref().err().map(|why| why.message.clone());
        self.passed.notify_all();
        answer
    }

    /// The program, when nobody asks it any more.
    pub fn into_inner(self) -> Serving {
        let serving = self.serving.into_inner();
        serving.unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
