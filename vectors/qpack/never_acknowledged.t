# Requests as ls-qpack's encoder writes them (pylsqpack 1.0.0), table of 4096 bytes, 16 blocked streams.
table 4096
encoder 3fe11f
section 0 0000d1d7508f1d665cbe474d7415721e9b8f34d33f5187606c47fe12007f5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=0
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
encoder ff209cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427
section 4 0280d4d750882f91d35d055c87a75187606c47fe1200ff10dddf
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /a/b?c=1
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
section 8 0380d5d710518860d5485f2bce9a6880dddf2f1bf2b55555555555555555555555555555555555555555555555555555555555555555ec07475d2c0dfdbf214dd3a4533afffcffebdfffa789afbfffc078bffdfff42db4ecbfffa35bffc908fbf1bdffe40e7d94dff3ffd24bfffc3fff3831bffffc27689fffbfff40d3b3fffb2cc0fffe0b01f1940127ff841bff72472c1d22374fff3effff813ffd99a7ffe19dfff3
encoder c0882f91d35d055c87a7
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: 0j77e=5;9deijj_g79|~8{h_4;{08e~}1547f{b-^dc99b8^=6;ei|}cf\{6aa9\h4c{{=47h}fg0\-09ae01c^ca9;dbf=j_ij^;\c}g49|i7^
encoder c08f1d665cbe474d7415721e9b8f34d33fdd97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68
section 12 0581d1d710c18111df
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
section 16 0401d5d7815187606c47fe1206bf83dddf2f1df2b55555555555555555555555555555555555555555555555555555555555555555555fb917fcff8d7ffe9a731beffff393960e828e79266bfe05a702e3637fffbffdfbff9fffc2008a6942dfdfff917ff8295cffe959fff256dc9bfe7f552d387c5c646969312d64356a3238387b6730337c617d7c6a697c7b65373739382d5c653d7e666a5f7d647c5f337b5de58a0666fff642b32b9fffc0a09d6fff59118b24bf6f7ffe9a56de76669671bfffd20fffcfff666a3fffe1ffd59e91d666fff7ffbd16fb7e77a5582191bff845a583a14ceffcfbff9247fff9efff7fff84734f310c6fffc43372987d3ffc6a70cfff3fff87df
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=4
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: 2||4{ghii;{6he=j2bhdg4|146165a9~~;|\=12gf15;^_^2f6~e3^f56g|
= cookie: 8|\dii1-d5j288{g03|a}|ji|{e7798-\e=~fj_}d|_3{
= referer: _=3g}de3f6\e0h-}32iedf;8{gf587g4-65{da^}g4b\~-8d73g}~j-;9h8f-11d5|c-f=jei7|;|db{8}\bghgcii{ci5fiaj^4h1h|\;
section 20 0500d1d782c18380df
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
section 24 0302d4d782c183dddf2df2b26c190bdc132b7ff8e8a7e8c91fff8e7db5132f7ff5cfffdffd6cd2fffe67fff87fff0fffcccd146eccd3dfffc2775cfff642441fffe1fffc1918ccb36b4bfffa66ffff17ffde8cc0b7dfff9315614438ba0c4d7d81c7e7010b1c44e91ffce9d32f21f2b55555555555555555555555555555555555555555555555555555555555555555555555555555d2ff92c84fb589ffe741fff7efffc0c12be259cfb67fff849238d746da148cfff938a6036b41fff84273ffae9bfff48f46b346fff7ffc98ad0bffaf98257dc95929bfff87ffe9e4746c9237da8bffcff9d3ffc
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: 23-^72hj3c9|6;4_38~6{~5if{3\\{3g_b7g48\h76}dc_1\\3aai-5-f{g5{e}j3=-;^ge-2_a_ja24;069h0ceb_cjb|jj
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: |fdc;-c^ja~;^1=f92-6;3\dd64j542d3^h2g05-={226~7i{d8b-4i}^ge42~9i1e96f3ei\{hd7a3cb94_^|j^
section 28 0302d5d782c183dddf2f0af2b5555555555555555555555555555557cefffc3ff82097fe36418cae4eb13fff11d99f7085e9fff9968cf4e0fffd1bdf723b133d1f8fffd924648f4133dfffbefffd344df495e647d1a781d1d32cb38493fe38d8270c8073fff39d3efa067f2f0ff2b55555555555555555555555555555555555555555a17dffffe13b2d1bfff7ffafffc98aeac5ff9ff1d190dffec1284d03fffe4c26a5832f02f2b585ed6950958d279f8bfe492b6b2ce44cc7fffc2610a26660c503bf6b74144f09c14c22b9ffd03b
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnn: {a|21e|5caae6h-c{c7g96cej{34i8h0{b8;d7_3j9b}dd3c8=g8{;}i_5jf83aj480j7i--6cd|650h1d06{6j;j1h
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnn: 99\h34i{}9|ge7-e||7aci}=f1i=9^g24f=
= x-request-id: _|df5--6_3b\g22_3g1_=7;-j2_8262g2e6~07
encoder 65f2b26c190b00
section 32 0680d1d7825187606c47fe1207bf83dddf00ebff86fffe1ff1a6c1d1f0ffcfffe1fffa5fff5d8a59485fffe0f393360fff6470a581d9fffdff80fff7a7421a617ff8366713436bffd585ff0724e234e37a46a065e89c24ed749a30bd1ffff0fffd27ff7ffd786b40f7fcfffe1036e97fff08bfffc1d68c114b31207bfe7f
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=8
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: |i\|450j91|\{f}7_ffce\86g50}d6ee=7h}|0}jjcig2^a3h24a4}-2|adh2iha8d4=38_6ch4jgb18b\{d~}8a-=8|\=57e{2e\74i12fgc=8|
section 36 0600d5d7825187606c47fe1207ff8481df40c28811fff8e05c92301a0fbfff163446fff19ffeb8d34d35ffd781ffe4903f2ffc927fb8a2fffe101662ccdc40981f6d37ff235bfff4bfffa395a211a18ffff837f6cf
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=9
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-trace: _0b^616db0i=;^-i_i^3~64444~80^d=9f|dh;__\=egeg5_0g0;45|b-{f{bf4cc4aa\5;3
section 40 0402d1d782c184dddf
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
encoder c18860d5485f2bce9a6869f2b585ed6950958d2700
section 44 0881d1d782108481df01cffffe0e0c11bfff199a700c727ffe8fffd67ffdfffcdc0d87fff48f09e00c4b1997c8dbae0a46e4145237f6cffc71f1c9f6fb7ffefff7ffdffef48dffffe0cc4f9a2fff07fff9bfffe1fffc270bcd0b40507e393962306a37685e7b38325e5c387c5f6133345c372d3b3865393b356a2d5c37623d6a5f6165303d5c3d627e7c68615e2d667c69683b327b683b3d3d36397e303938657c7e7b646834365c3231657c556c377e6a5e316136697c35625e64667b7b61327b375f5e3b633030636532655e6a373d62385c647d7c34367e65357b7b7b64675c657c6a685c61627d5e7b69645c7e667e342d367b7c307b655e66303d5f325f657d5f3834697c6939376665397d315c65683d3d615f7d64677e
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-request-id: \6a0b9|3gh0aad{b}3}{5=51{d8280a2-i39c5762d5d2_d5;3|69ad;95}~}~jb9\3_9i_^a{5\\h1842
= x-trace: ~99b0j7h^{82^\8|_a34\7-;8e9;5j-\7b=j_ae0=\=b~|ha^-f|ih;2{h;==69~098e|~{dh46\21e|
= cookie: 7~j^1a6i|5b^df{{a2{7_^;c00ce2e^j7=b8\d}|46~e5{{{dg\e|jh\ab}^{id\~f~4-6{|0{e^f0=_2_e}_84i|i97fe9}1\eh==a_}dg~
section 48 0800d1d7848186dddf5de1fffcecad48408bfff84b2cc4fff3ffa327ff9108859da8a3fff5959a906204d3bdff19803ff1a74307ffa5fffe0227467a74fb926640d749bffdfffe0b7fc6fa09ffff09234479afff5933661493b907ff5695c6661b7fffc05fffbfff7fff000b40472d3b3b635e325f656a3336656a30347b346a5e7d5c7e5e3835393965665e692d367d61333d7c61697d377b35315c7b7d67337e6134333b673d7c5f3b63632d686a32673331385f
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= referer: {7f4dc12\ffgc^~ac^_2ceh4_b}3-4da20gh8|3=1|471=}e\2cj3jj;dg304jg}\-|5j29^cd4c84}3i5i2dh6=~-f63ga5\2{{\02
= x-request-id: -;;c^2_ej36ej04{4j^}\~^8599ef^i-6}a3=|ai}7{51\{}g3~a43;g=|_;cc-hj2g318_
section 52 0701d4d784818683df
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
section 56 0602d4d7855187606c47fe1200b58683df42bf65696759e71d6406101bfb6a36de7268a3fffd2c61e9ff09fffc269dbffef46bfff83acba48fec92c53404117ffc73fff7df4090ae81666792323608fffdfb42ac6a734ad4b2fffeffeb507fff00fff7fe15f816ff82ffeba49ba06233b3adff2474029dffffc018da83ffd67f42a46e77a09fa4df6b05dffeb6f07fff41ffe089ffe8defffe1ffd1bcec025bffab01b999ff9
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /a/b?c=14
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-trace: 3-fh-86730i205;4b586g_b{fb1j|c\gh5~j4\737cb;cf_g=c2e^6{;j1ce70-3hdbc50b};
= x-trace: 4hif4ff{~4=\1~|e9=-|2~7cgj1_i7h-|d702h9{0aa4=}3
= x-trace: 5h8=hjg;-17~581{=^2c}a8\~a87=2-~-05g3|
section 60 0701d5d7858186dddf55a66fffa380dd2283ffa55bffad7fcfb7e2fff66e8eb6fcbf7ffe4dd0401c9d03ffe7dccf16567f420e317e3865646a697e3633692d5c3442dafb8a0fff1d01a2fb1ce09c1ffd9bfe326fffe001fdfffe5ba741b9fffc0c598322c1048e4ac988f7ff8d37d02e39ffdfffdf71819fff1fff867656db07ff859ffff819f8249fffc9ffff84f1cd039395d8bfff361fff5b0c51cd
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: 5~a=ij_=~e-~4|;9_}gj759f;^gj20adj1^;g8ef3
= x-trace: 1~8edji~63i-\4
= x-trace: ;_=^70i_;ah0h0~g|3i\0a;{-jja6\ieg1d-10d6f3ic8^45j166~{;b03^9|i7f550^eh\i9=dh^h\hbg=6he7_{51}51_bg
section 64 0602d1d7845187606c47fe1200b98683df42842183237f
= :method: GET
= :scheme: https
= :authority: api.example.com:8443
= :path: /a/b?c=16
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-trace: ci1d5
section 68 0000d5d750882f91d35d055c87a75187606c47fe1200bb5f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf5d8fe933dffd0364fff1b07fc14dffd08f
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /a/b?c=17
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= referer: jg8~05c^50|2g~1a
encoder 69f2b585ed6950958d2700
section 72 0000d4d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf55c6ffec802c937fc77ed6006223327ff5d8fa7ff8b0bfe7fc69b37fc074fffcefffe1ccdca49bffd0c4f3337d92223907ffbf71be51b9ffe36d3f17ffe31bffc1b3ffe3c672337f5d98fbfff669ca3fffe0b4513c62b6c87fff80d96608dc91b7bf2f02f2b585ed6950958d27b080adfff5b94bffd705ff3fff815cfffe1ffe326312791afff160bd27fff0fff5c75c95c98a3202704f246ccb193ffc6f
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= cookie: ~d0edg|7;-01_c3d~7bj^-2||45i|0j{7{ag5fcg}1_83g;c_c6=};b9ea6^549_{ii^a3^8i6bi
= referer: ;}ghea\-__8ie531\a33=b6d58
= x-request-id: =e5~5fe~62|\e6\^3iichd4^-18d\}676f6geac0h0hdb3fbc^5
section 76 0000d5d750882f91d35d055c87a7518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2f03f2b5555555555555557fca7daffeb72c6177fff4dff01fffc24fb99a924fbfbfb02ce7ff5c79d2fff912d1ac6786dbdffd65e8ca0656648cceeb81704564c1e8f91a183ee4136d4af4818e77865fff6383a7ffad7f
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnn: 94~5fb17{g|0\d;g4dd;;;0-6~687e^_-b-i8a58~38be03-3c3h76162e3i1j9c4a0;d254f8d1bh8ae}b=j}4
encoder 65f2b26c190b00
section 80 0000d1d750882f91d35d055c87a75187606c47fe1201035f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf5d38326468667c7c7d7c7d316431387b3d3d7c345e6562333b67633b7c345f38357c5c5e5e7e3965643d3861333368365e3d3b643868343067382df2b26c190b0b34397b7d663b3b36303b632f0bf2b55555555555555555555555555555555f026469
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=20
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= referer: 2dhf||}|}1d18{==|4^eb3;gc;|4_85|\^^~9ed=8a33h6^=;d8h40g8
= x-trace: 49{}f;;60;c
= x-nnnnnnnnnnnnnnnnnnnnn: di
section 84 0000d5d750882f91d35d055c87a75187606c47fe1201075f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: PUT
= :scheme: https
= :authority: example.com
= :path: /a/b?c=21
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
section 88 0000d4d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2f27f2b5555555555555555555555555555555555555555555555555555555555555555555555555555555555555557fa137ff8f4466bfe7d97a1a06a6fff1f95e99a2ffff09bec128bfff7ff7a0bffd6c5f
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: i^8_i4|;eji=4g^9f8g4e\g;0f2{~j2}52
section 92 0000d4d750882f91d35d055c87a7518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2f27f2b55555555555555555555555555555555555555555555555555555555555555555555555555555555555555555a68a611bfff14bfffc3ffc0c1fff9a71c7e62cab022ffeba61c507db3290c49a4fffdd1d6c0fff
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: _g2i{ee\^1={4669gef-0_~7ia_=;3fcicgd{j7509
section 96 0000d4d7508f1d665cbe474d7415721e9b8f34d33f518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
section 100 0000d1d750882f91d35d055c87a75187606c47fe1201375f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /a/b?c=25
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
encoder 65f2b26c190b0069f2b585ed6950958d2700
section 104 0000d5d7508f1d665cbe474d7415721e9b8f34d33fc15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2df2b26c190bb88fffde86fff7ffb2096ffe87fe7fff077a4127dcdff3ffd7d6822074319f24fffd8c8f882f4ab320fff0d3ad2fffab44e39d257bffdfffe12f01f2b5555555555557941ce171c6caefdb3fffc1e6a58c3fff883581fffb2f02f2b585ed6950958d27c98ffe4a5e9d3fff7ffbffec123914bff3fff832b15d8ba0252b52b4294bd045740ece20ffcff84700ffff8d7ffbf7ffe49ffdffebaeffc59efff6478cfc85fffe0007ffac8dd924960f
= :method: PUT
= :scheme: https
= :authority: api.example.com:8443
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: b}ji}~d2-~1|\7j=d;g|}9-=_0jii9ch~bc9218f-30^ih-f}-_66jf8}\
= x-nnnnnnnn: ah1665e7;3\84fb1{ca-0{
= x-request-id: b|fejj{}}=d6_f|\3-e7_j0fe4f42fej2e707h21||c609^4};^d~~77|-8}d8i9de\00}3a7ddf=
encoder 65f2b26c190b00
section 108 0000d4d7508f1d665cbe474d7415721e9b8f34d33f518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb5125427dddf2df2b26c190bd3902102c5fff3fff34d2dff23074040e49f60fffe1186081c145ffe87ffaebaf05a317fff813fe7ffbd16241344cc71ffcfff1ce8efff8ecacfff8eba42fff93c911626967ffe7ffe807ffe4f1ce3fb9fffbffd
= :method: POST
= :scheme: https
= :authority: api.example.com:8443
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: */*
= accept-encoding: gzip, deflate, br
= x-trace: d110-e^{44-|b0j0=6d;0\b1==62_}1~77814ie\c|}j-c=g_3bb|^6j7^7f3^77ce^hd_e_4-9|{=a^hbha;h~~
encoder 65f2b26c190b00
section 112 0000d4d750882f91d35d055c87a7c15f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df2df2b26c190b0055d007477effe37ffe7fc8c2cffff02c4fb4579fff9138058707fff08206ddfff5d28c0dc1fffbfff082f0d66e3fff246c8478409ccb34b11afff1dfffdffebbffe34f7471f742dfffbf737ffe648cc8e0602f02f2b55555555555555fb4fff22fffd34f3cf380623748c6e33d3ffc8bfe3a27fefa7ff7ede8168256da6bffde828e469f04ab7ffae7fff01fffbf7fffbffc
= :method: POST
= :scheme: https
= :authority: example.com
= :path: /
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
= x-trace: 
= cookie: 0j7;|5^|b13\e_94e89|_60-a=\==57}7ea05={{218a-5b^d5cc820hi-4-c4^7{}7^48j69715};g{3c3d61=
= x-nnnnnnnnn: ^_{ghhhh0a2ijba63j^_|729;j~;8=-=f544}j2bd490f-}6\a};{^
section 116 0000d1d750882f91d35d055c87a7518860d5485f2bce9a685f509cd07f66a281b0dae053fafc087ed4ce6aadf2a7979c89c6bfb51254275f0e97497ca589d34d1f43aeba0c41a4c7a98f33a69a3fdf9a68df
= :method: GET
= :scheme: https
= :authority: example.com
= :path: /index.html
= user-agent: Mozilla/5.0 (X11; Linux x86_64) test
= accept: text/html,application/xhtml+xml
= accept-encoding: gzip, deflate, br
