// In place of zlib, which emscripten has not: the page inflates a .gz before the module reads it.
#pragma once

#include <cstdio>

using gzFile_s = std::FILE;
using gzFile = gzFile_s*;
enum { Z_OK = 0, Z_ERRNO = -1, Z_DATA_ERROR = -3, Z_MEM_ERROR = -4, Z_BUF_ERROR = -5 };

inline gzFile gzdopen(int descriptor, const char* mode) {
  return fdopen(descriptor, mode);
}
inline int gzbuffer(gzFile, unsigned) {
  return 0;
}
inline int gzread(gzFile file, void* to, unsigned bytes) {
  return static_cast<int>(std::fread(to, 1, bytes, file));
}
inline int gzdirect(gzFile) {
  return 1;
}
inline const char* gzerror(gzFile file, int* error) {
  *error = std::ferror(file) ? Z_ERRNO : Z_OK;
  return "";
}
inline int gzclose(gzFile file) {
  return std::fclose(file);
}
