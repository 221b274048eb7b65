//! Whether memory comes in huge pages. Computing gains from them. Planning touches a few megabytes here and there, and
//! a huge page costs the clearing of two: without them a no-op of 1,000 stages took 40 ms of CPU time instead of 51.
//!
//! Where the system has no such switch nothing changes.

/// Small pages from here on, in this process and in those it starts.
pub fn avoid() {
    set(false);
}

/// Huge pages again, where the system gives them. Before anything is computed.
pub fn allow() {
    set(true);
}

#[cfg(target_os = "linux")]
fn set(allowed: bool) {
    // A kernel that refuses costs time, not results.
    let _ = rustix::thread::disable_transparent_huge_pages(!allowed);
}

#[cfg(not(target_os = "linux"))]
fn set(_: bool) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    /// One test, as the switch is the process's.
    #[test]
    fn they_are_avoided_until_they_are_allowed() {
        let avoided = || rustix::thread::transparent_huge_pages_are_disabled().unwrap();
        super::avoid();
        assert!(avoided());
        super::allow();
        assert!(!avoided());
    }
}
