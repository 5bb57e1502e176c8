// For em++'s linker: functions in whose place wasm-opt --asyncify puts its own
// (common/simt/executable_wasm.cpp).
mergeInto(LibraryManager.library, {
  start_unwind: function() {},
  stop_unwind: function() {},
  start_rewind: function() {},
  stop_rewind: function() {}
});
