package artifacts

import (
	"bytes"
	"encoding/binary"
	"io"
)

// The media types of the images whose headers are read here.
const (
	typePNG  = "image/png"
	typeJPEG = "image/jpeg"
	typeGIF  = "image/gif"
	typeWebP = "image/webp"
)

// imageType is the media type of an image by its signature, "" for none.
func imageType(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return typePNG
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return typeJPEG
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return typeGIF
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return typeWebP
	default:
		return ""
	}
}

// imageSize reads the size in pixels out of the header, without decoding
// anything; 0, 0 when the header is cut or wrong.
func imageSize(mediaType string, r io.ReaderAt) (width, height int) {
	switch mediaType {
	case typePNG:
		return pngSize(r)
	case typeJPEG:
		return jpegSize(r)
	case typeGIF:
		return gifSize(r)
	case typeWebP:
		return webpSize(r)
	default:
		return 0, 0
	}
}

// pngSize reads IHDR, which the standard puts first.
func pngSize(r io.ReaderAt) (width, height int) {
	var b [24]byte
	if !readFull(r, b[:], 0) || string(b[12:16]) != "IHDR" {
		return 0, 0
	}
	w, h := binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:])
	if w > 1<<31-1 || h > 1<<31-1 { // the standard's own limit
		return 0, 0
	}
	return int(w), int(h)
}

func gifSize(r io.ReaderAt) (width, height int) {
	var b [4]byte
	if !readFull(r, b[:], 6) {
		return 0, 0
	}
	return int(binary.LittleEndian.Uint16(b[:])), int(binary.LittleEndian.Uint16(b[2:]))
}

// maxSegments bounds the walk through a JPEG: profiles and thumbnails are cut
// into segments of 64 KiB, and no camera writes this many.
const maxSegments = 1024

// jpegSize walks the segments to the frame header, which may stand behind
// hundreds of kilobytes of profiles.
func jpegSize(r io.ReaderAt) (width, height int) {
	at := int64(2) // behind the start of image
	for range maxSegments {
		var b [9]byte // marker, length, and of a frame header: precision, height, width
		if !readFull(r, b[:4], at) || b[0] != 0xff {
			return 0, 0
		}
		marker := b[1]
		switch {
		case marker == 0xff: // fill
			at++
			continue
		case marker == 0x01, marker >= 0xd0 && marker <= 0xd8: // no length
			at += 2
			continue
		case marker == 0xd9, marker == 0xda: // the end, or pixels without a frame header
			return 0, 0
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			if !readFull(r, b[:], at) {
				return 0, 0
			}
			return int(binary.BigEndian.Uint16(b[7:])), int(binary.BigEndian.Uint16(b[5:]))
		}
		at += 2 + int64(binary.BigEndian.Uint16(b[2:]))
	}
	return 0, 0
}

// webpSize reads the first chunk, of which there are three sorts.
func webpSize(r io.ReaderAt) (width, height int) {
	var b [30]byte
	if !readFull(r, b[:25], 0) { // the shortest one's header
		return 0, 0
	}
	if string(b[12:16]) == "VP8L" {
		if b[20] != 0x2f {
			return 0, 0
		}
		bits := binary.LittleEndian.Uint32(b[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
	}
	if !readFull(r, b[:], 0) {
		return 0, 0
	}
	switch string(b[12:16]) {
	case "VP8 ":
		if !bytes.Equal(b[23:26], []byte{0x9d, 0x01, 0x2a}) {
			return 0, 0
		}
		return int(binary.LittleEndian.Uint16(b[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(b[28:]) & 0x3fff)
	case "VP8X":
		return int(uint24(b[24:])) + 1, int(uint24(b[27:])) + 1
	default:
		return 0, 0
	}
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

// readFull fills b from the offset, or reports that it cannot.
func readFull(r io.ReaderAt, b []byte, offset int64) bool {
	n, _ := r.ReadAt(b, offset)
	return n == len(b)
}
