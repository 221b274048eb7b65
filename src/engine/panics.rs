//! Panics of stages as messages. Panics elsewhere are printed as usual.

use std::any::Any;
use std::cell::RefCell;
use std::thread::Result as Caught;

thread_local! {
    /// `Some` while this thread runs a stage; then the last panic's message and place.
    static RECORD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps panics inside [`recorded`] off the terminal. Call once, at the start.
pub fn install() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info
            .location()
            .map(|at| format!(" at {}:{}", at.file(), at.line()));
        let message = format!("{}{}", text(info.payload()), place.unwrap_or_default());
        let recorded = RECORD.with_borrow_mut(|record| match record {
            Some(record) => {
                *record = message;
                true
            }
            None => false,
        });
        // Helper threads of the kinds catch their panics and report them as failures.
        let helper = std::thread::current()
            .name()
            .is_some_and(|name| name.starts_with("ablate-"));
        if !recorded && !helper {
            usual(info);
        }
    }));
}

/// Calls something that catches its own panics, and turns a caught panic into its message.
pub fn recorded<T>(call: impl FnOnce() -> Caught<T>) -> Result<T, String> {
    let outer = RECORD.replace(Some(String::new()));
    let result = call();
    let message = RECORD.replace(outer).unwrap_or_default();
    result.map_err(|payload| match message.is_empty() {
        // It came from another thread, whose hook call could not reach our record.
        true => text(payload.as_ref()).to_owned(),
        false => message,
    })
}

fn text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
