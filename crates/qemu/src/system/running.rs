//! Which virtual processor runs.
//!
//! QEMU tells it with each callback. But where processors take turns on one thread, newer ones put the
//! number of the processor for which a block is translated into its code, and then run the code
//! on all of them. There the processor is known by QEMU's own variable, which its modules use.

use core::ffi::c_uint;

use crate::api::{self, Api, Cpu, CpuApi};

/// Most processors that are told apart.
const MAX_VCPUS: usize = 256;

/// Knows the processor that runs.
pub struct Running {
    own: Option<Own>,
}

/// QEMU's variable, and whose it was last.
struct Own {
    cpus: CpuApi,
    vcpus: usize,
    current: Option<*const *mut Cpu>,
    last: *mut Cpu,
    vcpu: c_uint,
}

impl Running {
    /// For a machine with so many processors.
    ///
    /// # Errors
    /// This QEMU tells the wrong processor, and does not export what tells the right one.
    pub fn new(api: &Api, vcpus: usize) -> Result<Self, String> {
        if vcpus <= 1 || !api.mistakes_processors() {
            return Ok(Self { own: None });
        }
        if vcpus > MAX_VCPUS {
            return Err(format!("{vcpus} virtual processors; allowed: {MAX_VCPUS}"));
        }
        let cpus = CpuApi::load().ok().filter(|_| api::current_cpu().is_some());
        let cpus = cpus.ok_or(
            "this QEMU does not export which of several virtual processors runs (qemu_get_cpu, \
             cpu_exit, current_cpu); allowed: 1 (-smp 1)",
        )?;
        let own = Own {
            cpus,
            vcpus,
            current: None,
            last: core::ptr::null_mut(),
            vcpu: 0,
        };
        Ok(Self { own: Some(own) })
    }

    /// The processor that runs; `told` is what the callback says. To be called on the thread
    /// of virtual processors.
    #[inline(always)]
    pub fn of(&mut self, told: c_uint) -> c_uint {
        match &mut self.own {
            None => told,
            Some(own) => own.of(told),
        }
    }
}

impl Own {
    #[inline(always)]
    fn of(&mut self, told: c_uint) -> c_uint {
        if let Some(current) = self.current {
            // SAFETY: QEMU's variable of this thread.
            let cpu = unsafe { *current };
            if cpu == self.last {
                return self.vcpu;
            }
        }
        self.look(told)
    }

    #[cold]
    fn look(&mut self, told: c_uint) -> c_uint {
        // The variable is the calling thread's, so it is looked up in its first callback.
        let current = self.current.or_else(api::current_cpu);
        self.current = current;
        let Some(current) = current else {
            return told;
        };
        // SAFETY: as above.
        let cpu = unsafe { *current };
        let get = self.cpus.get_cpu;
        // SAFETY: QEMU's function on a number.
        let is = |i: &usize| unsafe { get(*i as i32) } == cpu;
        let vcpu = (0..self.vcpus).find(is).map_or(told, |i| i as c_uint);
        (self.last, self.vcpu) = (cpu, vcpu);
        vcpu
    }
}
