# Requests as ls-qpack's encoder writes them (pylsqpack 1.0.0), table of 4096 bytes, 0 blocked streams.
table 4096
encoder 3fe11f
section 0 0000d5d7508f1d665cbe474d7415721e9b8f34d33f518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
encoder c08f1d665cbe474d7415721e9b8f34d33fff209cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dd97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68
section 4 0000d4d7508f1d665cbe474d7415721e9b8f34d33f5187606c47fe1200ff5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df55de1bdffefffefff48d3bf609fffc724186665d300ce8c8e9a0756091e77ffc805fffc1e37ff9fffbffa30b23e8618637a39dd81c59a91ffff0047603064293effe7fcfff5a6bfe4f2fff903bff0dffe380fffdf6dc5ffdfffc665f75efff7f550a7d6137377d3862657c5e
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=1
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= cookie: a8}{}c47;0h^6da1g37i0i7ac7i=7-1c87^=2\8i^{~a13ajia1b8bh7=6-4d9^0c7=i1dec;||}44|hf^=7|i^60{;5_~{i3978}
= cookie: }a77}8be|^
encoder c18860d5485f2bce9a68
section 8 0000d4d750882f91d35d055c87a7518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68dfc52f02f2b585ed6950958d27de81d294cd7fc7bffd8bfff8412c03ffe8dffff4201c6c9a79de91a9bffc22d04f24f3c8d3d2019037ffe4bff04dc12805ff1a95d9225a469dfff1b909f73c5ff03ffe948fc5ffd65b6c5115ffff596e5fff1ae8ec9fffc1ffffe0eca00cff
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= cookie: 
= x-request-id: =7eei4|8}_\=f=a~a9}10ab3ihh8d4g^c-=hdhhd48d0305^f|25=f02|4f7d_-d47^5dc;h_|1}ec9_~3552_e9}35f^4j7d\9\7f01h
encoder c0882f91d35d055c87a769f2b585ed6950958d2700
section 12 0000d5d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df5db3756ff9ffe9669c3fff80427491b97eda5bffcfffe11343111e8dc6661b8b166ffefffa164130567e677ffc34dffdfffe039c1f2f1ff2b5555555555555555555555555555555555555555555555555555555555555555555555557868e2e837e0ff92f02f2b585ed6950958d276332367b333b34317b5e615e2d3b393d34653862667b7b5f3d2d343038697e5e7d3734616a305c3161637e635c347b7c6136337d647c3b357c7b7c637c5c64696132635c7b377b2d3668327d68645f3039613d36333d7e7c383866367e2d5e2d6163667e
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: 7-|}egh1{0ccjd5f;4-^\_4a2c8b63ga6-eg~}130g1-9g7^ig~\ah0
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: b_ja9=|
= x-request-id: 26{3;41{^a^-;9=4e8bf{{_=-408i~^}74aj0\1ac~c\4{|a63}d|;5|{|c|\dia2c\{7{-6h2}hd_09a=63=~|88f6~-^-acf~
section 16 0000d1d7508f1d665cbe474d7415721e9b8f34d33f518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
section 20 0000d5d750882f91d35d055c87a75187606c47fe1206ff5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2df2b26c190bbd1fff6603337db507ff9fffc27e91fffa0fb13d3b3ffe3c2212493a3b2371fffb013ee07e39a3fb2fffefffe0fb93bef3229cc12adffe8166bffc95a37f
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /a/b?c=5
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-trace: a~g03g;4=^\hjb}0;28h3^82ccddj7d5b}=c;=9bgb;e{\96h9832hi1e-}0-4^f4i
encoder 65f2b26c190b00
section 24 0000d4d750882f91d35d055c87a7518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2df2b26c190beffffe0f44b3cf7fcff8e8561fdbbff3eca4927fb8962fffa395b946e9822fffd3363fffc68a7fff40564c1000a373fff74fb7db886b4e4fffe0db514dfffbfff37fffc0b238d3b20c12beec532cfbfff04e1221cdfff9efff7ffdfffe1d09fffc3ffb24ad06499efff7fff7ff9fff85
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: \8_-88||71-a;7|;ecdh;_-e}af5fa7i12{g5a{i_h}0e3i100ea6{j;95_a-hc\54_g{{5\ed647da0f97_g-99|26c_ag{8}}\jc\~df41dg8}{^{2
encoder 65f2b26c190b00
section 28 0000d1d7508f1d665cbe474d7415721e9b8f34d33f518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2df2b26c190baa66467fe392ca5fff4c55a258ae7ff7ffd83ffb336ecb34f294446c307fff002d112723dffe3831c523df2f17f2b55555555555555555555555555555555555555555555555555555555fd6249ffd0cfffe3ccb800fd89e65d77fff412fff6277ffc83fe2dffe47d3ffb34d2bc26bffc9d9ff8dcff7011bff8cb301befa33ff3ecd045ffeb7046d361706b372bbfffba7491b6c84fffe12b4d05b70ce004f95a1ff2f1af2b55555555555555555555555555555555555555555555555555555555555555f890f4287ffa007db2dbf
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: 3d3|6ffe}ie-_-e6~}=~g57fghfe2c51=\0-_chc8^6aa_d8
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: cd~1h^83601;28377{=f~_7^=|-^bj~ggf824^h3|5h;=c5|33=i;j3|;i=_}5=b4516a-5f7{jjd55cc\f44156i6029e4a
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: 1je1~00;359
section 32 0000d1d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf5da6115e69e79c8d679ffffdfffa70411fd95d79e27fff0fbe816566fa0bffc703319cfffe13cedf553e3b376467357c7d6333367c3d3d697c63647e5c6431357b6835635c5c3531697d655e3565627b663d7d6738357d396568356934616432693b5e3b3b68367d
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= referer: 2e84886b-89{{h0=b;e788c\;j13-5j2^61gi6\hh5
= cookie: ;7dg5|}c36|==i|cd~\d15{h5c\\51i}e^5eb{f=}g85}9eh5i4ad2i;^;;h6}
encoder 65f2b26c190b00
section 36 0000d1d7508f1d665cbe474d7415721e9b8f34d33f5187606c47fe1207ff5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf55e89d62bee7ff8f3456c659a0ff8e87a74fffdffe47ffe01a24e2334537ff7efffdfffe12167726fffe1ffeb52c80680e0bfe4b294c21fff5f6e427ff48cfff92cff7fffc249e78c04589ffd1381920823fffce15d7246defb6bfff009fff81012414808e733eb3b1832df2b26c190b0f2d7c7c7e7b356839356467673d6561
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=9
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: h-e96^84e5aeg=|71jj{^b^04ch2i4ei~;}\deh6g\}4fd04062|ffei2a~95dc~c3^fh;\dhhb0c-c~261d==b{6e76d58;4{0c{0=cd2d0bhi9-7b0
= x-trace: -||~{5h95dgg=ea
section 40 0000d5d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2f08f2b55555555555555555555555555f9f9bffdfff2493fe03fff84eebffff872bf33ecfff5c7239249e55a327dc9d0d
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnn: g}^dd|0\h79{af9g93~66bddhf-bc;dji
section 44 0000d4d7508f1d665cbe474d7415721e9b8f34d33f518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
section 48 0000d1d750882f91d35d055c87a75187606c47fe12008b5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=12
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
section 52 0000d4d7508f1d665cbe474d7415721e9b8f34d33f5187606c47fe1200b35f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2f02f2b585ed6950958d27c4fffc079b1c051fffae180ebedfffefff5afff1627490c5706efffb38bffbfff9b9c20317fff74fffe11067e847967c63fff7fff845d00fb468ba4a20cfff09134f7fc9242f06f2b5555555555555555555557f9cfff63e8b2cf37ffe36ec1ffe32d8dc0f48da8fffc6c43006623e373f5dacfff27ffeca410c3009f9167dc8e3134e7ffe1be58c3245fffc08efff659a0fffdffe7ffbffe2dff0866bfe7f
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=13
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-request-id: {085a=ea}6i0795{}4^-cjdie6a7}h2~{5h10ie{j\_1hjc8-9aa}\_j094i_jf21h|c_48|dd
= x-nnnnnnnnnnnnnn: }bj--85^57=^35a61jb4b^52a01gc9a6
= referer: ^h~fc2a1=29d-96bb246{a9eb1d_\c7~fg={^}^-|ci4|
section 56 0000d5d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
encoder 65f2b26c190b00
section 60 0000d5d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2df2b26c190bee2ffff06a08ffff845ffead37fff02fff6427fcfff5e745ffe05b2020fff25ff9fff9dfbfffe056dd01a2e904ed3c6fff19e903b3cb2f46c31089ffd33719bfff87ff56e921246cbffefff411c0fb2dffc8a671e94903658ba74fff647bfff39fffa069b289d5871045199cfff09f
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-trace: e\4=b\_}-g\e~dc|}872^15c0=^f|{7;\e570i_j=h48i^3j=7hffj51_2c~i5bi\~-jdcd5e}~0b=935|_g68fc=5e_jj}d8{6{=45e27-a_12bi6^c
encoder 69f2b585ed6950958d2700
section 64 0000d1d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2f02f2b585ed6950958d27d295ffb58dd3fff7ffe77fff7ff7ffdfffd3986c842e93ffbfffc1e88cdb2eb9fffc1a246124457636e237ffe9ffe451807ffe3ffffc20019f7269240f423ae48d7ff6709bffdfff3ffd8fefffd7fffd9c917f55b067a3e173fe7ffa1fffe0e8261ffcffebab7dacf11b24dfffc3ec2e36399e5a68c0eb9f6e4a5ffefffa1fffdffe7fc2ff55c36bfff7ffbff16ff913b2fffa0201bfff7effe4dd1b7638e3681f647a50883ffe91d996fffe0d3ad7ffe74cb39036598ae384ff826638d9fff3fff817ffdfffe1046b3b
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-request-id: f9;-ij{{7{~}{hia3117c~\8_i5376\4cb1c_e7b5_i{h|_b0a^9\=0i96gdd1jc76d4~h1i}^}b;}9}hc_
= cookie: 3j916|}1\70ga|~7-;-8c5cg\;165ag8-gb076;6fe~}1{^|e
= cookie: 4{}|-|_7f}0c05};|gj57bbb40;c8f121}c7g-\474{7i-6=5ege66c|23bb3^\e}\=b-7
section 68 0000d4d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df5da717fc73ffd346e4d017ffaefff819bec31862fffc197ffce9ffe33301d76437fff089b656801d3f5dc674303eb32c93a48d9432bf2ffff08bffa09fffcfffd3ffc9ffff4ad1608bedeffe989ff09136cfffaffff6275afb27ffa16fffc0c8b1082ffe93ffdfffe01e8170c39bffd2932f1cf2b55555555555555555555555555555555555555555555555555555555555555555579b0fffad4bfff991fffa5983ffef47ccf8192b2f16275b34d21bffdf
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: 2|6}ib6g=e~7^1g;1b1_{1f^j^3g077di\_53-=0j
= referer: 71=9-33cjd5e1f9f\_~0h^{h|h{f4e=_;8~ic|c_53}9~_74;c}15^1d-cc2~c}\1j16iag}ec
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: 1}4f{3a}eg1}j9i903e38e_75igdi}
section 72 0000d5d7508f1d665cbe474d7415721e9b8f34d33f5187606c47fe1200bd5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=18
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
section 76 0000d1d750882f91d35d055c87a75187606c47fe1200bf5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=19
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
encoder 69f2b585ed6950958d270065f2b26c190b00
section 80 0000d4d750882f91d35d055c87a7518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2f02f2b585ed6950958d27999962c6e12075b0c8e360140ec6cc0e3b18bfff840f7fff00ff2df2b26c190b177e5e5f7b7e325e3962375f673762653b7d663836613261
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-request-id: g-eb6c=751d6502=7b3=67b2\=8\1
= x-trace: ~^_{~2^9b7_g7be;}f86a2a
section 84 0000d1d750882f91d35d055c87a75187606c47fe1201075f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df5ddf6fffdfff639bfff3649a417fc23cf353c703528a06df240cbdd1a8a3107fff839fff9effebafce66fffc8e4281cfffc389bfffcfffc79afff05d3fe32b7ffe75ffff668c73b4fc8e7ffe2923fffe0f4e4287ffbffd8bffc67fe3e3743f6e49
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=21
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: 5}}bg{5cgd2|c884hb=4f2=59c=38j4_b21\6{8~79hi5^bde06{a_5{9|84^2j|3-{79}gbah49d6{ecb\8hce1~~_^3|9a71;6d
section 88 0000d4d750882f91d35d055c87a7518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
encoder 69f2b585ed6950958d2700
section 92 0000d4d750882f91d35d055c87a75187606c47fe1201335f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2f02f2b585ed6950958d27cb238efff7fff841ffebf287edaff93365fff5b96603ee7dced33d3fff7ffad886c8a7fffe0db30361fff62fb6fffa3983d3fe3bd259bffc2126097ffcfff48e16388dffe380962e937fff0f2f11f2b55555555555555555555555555555555555555555555f9cfffcfc9244e0d67c9ff1d6ba3bf7fffc1f97ffcffebee4acca483eff
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /a/b?c=23
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-request-id: c67~\=}9f1;4|g5e}5fg096;h43j{}52a32h\53=51}_;5~ag1j|7jfg^ccg1e^}c6eb_i^60f_jg\
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnn: {9dd_6a-9c|74j7;\9f^~96f3fc=;
encoder 65f2b26c190b00
section 96 0000d1d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2f20f2b55555555555555555555555555555555555555555555555555555555555555555555555555fc2fffe1f63ffeb8623fff0466c8e4111656ffff7fc9460fbfff7ed60fff8ec7ff0b312383ffb1cb37ff4c38249820238d942d7dc8dfff5cfffc495bfff09fffc277a2f559398124ff7301f1809ffd0bdffe7ffe0903ffef42df2b26c190bcd9fffc804f7dbc62cfd3fff7ff7fff0cab7ffe74d010036dc6ddfbffe91c29bffc7a033734b3b5fffc1f0fdffff01fd98cefff47ffe7dadfffa481c6db8bffbd1cfff1d7da24bfff9bfffe05e86
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: \;a~6ic9|2i5c6=_ef5{|fa0;};-1^7b|egcb=~bfg~ia=dg10c65e14;d5~6{cf5^c\h8_
= cookie: g0dh;g09a0c~18^{1c1}j
= x-trace: h^=28;8iehj{~{ae-{7i=c0a5657;~c6ei^8=i5gfh4\91;\a;ii7~a^;-{d=655_~j6^794cf{5\eji
section 100 0000d4d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2cf2b55555ce99a17fff0ff9ffe01e97edc884fb6e38ecc66fffd97ffd0406808e2cf4b1383fff1ae8ccc16a3274335fff8b1f4ff8fffc67ffd299cfff190b8d44e8621c841fd999909fffbfe4eead17fc9bffbf
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-nnn: g42\|^08f;6_295667gi5}f}0=i=c6-8f_6a^4j3g14bcji4{ebj|9|3}ei6^3164_71_adca;i3dc{|h7-_|g~
section 104 0000d4d750882f91d35d055c87a75187606c47fe1201395f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /a/b?c=26
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
section 108 0000d5d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf5dc794a49fffc6c8376391a88a6fffe1f650fdfdffcfff41ffd75e8df744e3e6e9d2267ffd02dfffc3fff87ff609258bffcfb79cfff7ffd93a3e1ff9f7ffd0c5ffd248dffff033cf8b5d10377c385f5c346a6a695c662d64377d61
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= referer: fech^5ca7bd4_ei\;e1;;|}0~78b97269ijj_3}0-\\~=df_^;86}}dj91|;~1_~cd5\i892
= referer: 7|8_\4jji\f-d7}a
section 112 0000d1d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df5d087d6867366139697b2f12f2b55555555555555555555555555555555555555555555555d5ffe97fff48e03ffc2164824fff7fe7fff0fffe0fc6fffc6ffff4eb3fd24fffc22371c819cbffe7fcffec11bd232b7fc2fff62e9137389b985ffeacb41fff9f96307fff07fffae4cf3edfdfff5d74c699cff9334317
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= referer: }hg6a9i{
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: ~e{d60^ced=d}|\\9b9|5{h-9jd{2c5bd1he^|~=b8d3-|e~_j_5h25g2}--={9fb0\9~6g895;~77iig6|g4a2
encoder 64f2b5555500
section 116 0000d5d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2f27f2b5555555555555555555555555555555555555555555555555555555555555555555555555555555555555557fd26bfff80dc1ffc8e2664fb3320e8199be8d4ff7d02ec0e7ff8097ffab74fffc273fff849ff3ffd04056ffe3ecb410b5ffdfb67fff80bffc73ffa197fff804a38e6003ffc9626db2c0b44ccf3822180c3fffdf55dd83fff87ff7a7fff034f008a3fffe0b0dd9e3274fff595becafbcb13ffb3fdffcff9f72cb3ce48fffd77ec934dffecb1fff9ff09d0a49622904fffce927ffbff06ef4ff9fffc01f71c723bf6573efffb308d04dff3ffd82090a5fbffeff2cf2b55555bafb34bffd760fff221cc68db583034397fff7fcfffe0f07fff8385599fff16fb71affeb71cceb6ccc0ff821cfffef4ff9f737fff089a9fffd70bf
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: 4\a6a|b_3d;i30j1g5j4h;j17=6^0f~-j{26\d|}0=e5|934114~;3\2^6~1f\1eabg00^f_55e=-_3hh0_a0ia{
= cookie: =\~j\ih=2ea\-a7hbcj}3-;e98-c~h;||;ffhhcb}7;cgg}fb^|cjecf_ec29|jd}|a7j|\0;bbd7;e6;~g2i=g|}==dee;~
= x-nnn: ;if~7=^_agib5-1=4af{|\81\6e-3^-;64~5bg753g0|2ah}j|;g\_4h}6e
