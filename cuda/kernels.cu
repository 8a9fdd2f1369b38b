// All kernels except resident.cu, in one translation unit: for one module of the driver, and for
// one library of the emulation.
#include "forward.cu"
#include "backward.cu"
#include "update.cu"
#include "training.cu"
#include "inference.cu"
#include "order.cu"
#include "pixels.cu"
#include "displacement.cu"
#include "deformation.cu"
