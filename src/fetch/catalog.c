/*
 * catalog.c - the data sets of `cohort data get`.
 *
 * A set is here only if its checksum is published: by torchvision (MD5), by Keras (SHA-256), or
 * with the text itself.
 */
#include "fetch/catalog.h"

#include <string.h>

#define MIB UINT64_C(1048576)

static const co_catalog_file catalog_mnist[] = {
    {"train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873", NULL, 16 * MIB},
    {"train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432", NULL, MIB},
    {"t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3", NULL, 4 * MIB},
    {"t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c", NULL, MIB},
};

static const co_catalog_file catalog_fashion_mnist[] = {
    {"train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d", NULL, 64 * MIB},
    {"train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe", NULL, MIB},
    {"t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79", NULL, 16 * MIB},
    {"t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310", NULL, MIB},
};

static const co_catalog_file catalog_cifar10[] = {
    {"cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a",
     "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce", 256 * MIB},
};

static const co_catalog_file catalog_cifar100[] = {
    {"cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85",
     "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7", 256 * MIB},
};

static const co_catalog_file catalog_imagenette[] = {
    {"imagenette2-160.tgz", "e793b78cc4c9e9a4ccc0c1155377a412", NULL, 256 * MIB},
};

static const co_catalog_file catalog_shakespeare[] = {
    {"input.txt", NULL, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
     2 * MIB},
};

const co_catalog_set co_catalog[] = {
    {.name = "mnist",
     .summary = "28x28 handwritten digits, 60,000 and 10,000",
     .source = "torchvision",
     .config = "mnist",
     .mirror = {"https://ossci-datasets.s3.amazonaws.com/mnist/",
                "http://yann.lecun.com/exdb/mnist/"},
     .file = catalog_mnist,
     .n = 4,
     .there = "t10k-labels-idx1-ubyte.gz"},
    {.name = "fashion-mnist",
     .summary = "28x28 pictures of clothing, 60,000 and 10,000",
     .source = "torchvision",
     .config = "fashion-mnist",
     .mirror = {"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"},
     .file = catalog_fashion_mnist,
     .n = 4,
     .there = "t10k-labels-idx1-ubyte.gz"},
    {.name = "cifar10",
     .summary = "32x32 colour images of 10 classes, 50,000 and 10,000",
     .source = "torchvision and Keras",
     .config = "cifar10",
     .mirror = {"https://www.cs.toronto.edu/~kriz/"},
     .file = catalog_cifar10,
     .n = 1,
     .unpacked = 512 * MIB,
     .there = "cifar-10-batches-py"},
    {.name = "cifar100",
     .summary = "the same of 100 classes",
     .source = "torchvision and Keras",
     .config = "cifar100",
     .mirror = {"https://www.cs.toronto.edu/~kriz/"},
     .file = catalog_cifar100,
     .n = 1,
     .unpacked = 512 * MIB,
     .there = "cifar-100-python"},
    {.name = "imagenette",
     .summary = "photos of 10 classes of ImageNet, shorter side 160, 9,469 and 3,925",
     .source = "torchvision",
     .config = "{name: imagefolder, path: %s/imagenette2-160, resize: 160}",
     .mirror = {"https://s3.amazonaws.com/fast-ai-imageclas/"},
     .file = catalog_imagenette,
     .n = 1,
     .unpacked = 512 * MIB,
     .there = "imagenette2-160"},
    {.name = "tinyshakespeare",
     .summary = "1.1 MB of Shakespeare's plays, to learn characters from",
     .source = "the checksum of the file in karpathy/char-rnn",
     .config = "{name: text, path: %s/input.txt, context: 64}",
     .mirror = {"https://raw.githubusercontent.com/karpathy/char-rnn/master/data/"
                "tinyshakespeare/"},
     .file = catalog_shakespeare,
     .n = 1,
     .there = "input.txt"},
    {.name = NULL},
};

const co_catalog_set *co_catalog_find(const char *name)
{
    for (const co_catalog_set *set = co_catalog; set->name; set++)
        if (strcmp(set->name, name) == 0)
            return set;
    return NULL;
}
