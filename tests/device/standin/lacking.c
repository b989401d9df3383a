/* lacking.c - a library of NVIDIA's without any function: found before the one of the stand-in, it
   is as if that were missing. */
int standin_lacks_all;
int standin_lacks_all = 1;
