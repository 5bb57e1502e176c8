// What a program writes: standard output and files of records. A write that fails is an error.
#pragma once

#include <string>

namespace spmv {

// To be called first. Standard streams that are closed are opened, so that no file takes their
// place and is written to by accident; a file that would become larger than allowed is an error of
// write() and no signal.
void prepare_output();

// Throws InputError when anything written to standard output so far has been lost.
void check_output();

// Appends `lines`, which end in '\n', to the file `path`: all of them or, if that fails, nothing.
// Throws InputError when it fails, or when the file ends within a line.
void append_lines(const std::string& path, const std::string& lines);

}  // namespace spmv
